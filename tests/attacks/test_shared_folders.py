"""Folders that everybody may write to: no name there can be foreseen, so none can be taken before."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.hosts.shared_connection import own_socket
from holdfast.hosts.socket_folder import runtime_folder
from kit.accounts import Account

DEEP = "x" * 60


@pytest.fixture
def shared() -> Iterator[Path]:
    """As /tmp: everybody may make names here."""
    made = Path(tempfile.mkdtemp(prefix="hfs-", dir="/tmp"))
    made.chmod(0o1777)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Its path is too long for sockets, so they need a place elsewhere."""
    place = tmp_path / DEEP / ".holdfast"
    place.mkdir(mode=0o700, parents=True)
    return place


def private(folder: Path) -> bool:
    status = folder.lstat()
    return not folder.is_symlink() and status.st_uid == os.getuid() and status.st_mode & 0o777 == 0o700


def folder_of(account: Account) -> Callable[[Path], object]:
    def take(place: Path) -> None:
        place.mkdir(mode=0o700)
        os.chown(place, account.uid, account.uid)

    return take


def test_a_folder_that_another_account_took_first_is_no_hindrance(shared, home, other):
    """The name of earlier versions."""
    folder_of(other)(shared / f"holdfast-{os.getuid()}")
    found = runtime_folder(None, shared, home)
    assert found is not None and private(found) and found.parent == shared


def test_two_homes_have_two_names_that_none_can_foresee(shared, home, tmp_path):
    second = tmp_path / DEEP / "second"
    second.mkdir()
    one, two = runtime_folder(None, shared, home), runtime_folder(None, shared, second)
    assert one is not None and two is not None and one != two
    assert one == runtime_folder(None, shared, home), "a later command finds the open connections"
    assert len({one.name, two.name, *os.listdir(shared)}) == 2
    assert str(os.getuid()) != one.name.rpartition("-")[2] and len(one.name) >= 15


def link_to_own(place: Path) -> None:
    elsewhere = place.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    place.symlink_to(elsewhere)


def open_to_others(place: Path) -> None:
    place.mkdir()
    place.chmod(0o755)


@pytest.mark.parametrize("taken", ["by nobody", "by a link", "by an open folder", "by a file", "by another account"])
def test_a_name_that_is_taken_after_a_cleaner_came_is_replaced_by_another(taken, shared, home, other):
    takers = {
        "by nobody": lambda place: None,
        "by a link": link_to_own,
        "by an open folder": open_to_others,
        "by a file": lambda place: place.write_text(""),
        "by another account": folder_of(other),
    }
    before = runtime_folder(None, shared, home)
    assert before is not None
    before.rmdir()
    takers[taken](before)
    after = runtime_folder(None, shared, home)
    assert after is not None and after != before and private(after)
    assert runtime_folder(None, shared, home) == after


def test_a_memory_that_leads_elsewhere_is_not_followed(shared, home, tmp_path):
    runtime_folder(None, shared, home)
    (memory,) = home.glob("run-*.at")
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    memory.write_text(str(mine))
    found = runtime_folder(None, shared, home)
    assert found is not None and found.parent == shared


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o1777, 0o750])
def test_a_runtime_folder_that_others_may_enter_is_passed_over(mode, shared):
    runtime = shared / "runtime"
    runtime.mkdir()
    runtime.chmod(mode)
    home = shared / "home"  # its path is short
    found = runtime_folder(str(runtime), shared, home)
    assert found is not None and found.parent == home and private(found)


def test_a_runtime_folder_of_another_account_is_passed_over(shared, other):
    """As `sudo -E` leaves the variable."""
    folder_of(other)(shared / "runtime")
    found = runtime_folder(str(shared / "runtime"), shared, shared / "home")
    assert found is not None and found.parent == shared / "home"


def test_a_runtime_folder_of_ones_own_is_used(shared):
    (shared / "runtime").mkdir(mode=0o700)
    found = runtime_folder(str(shared / "runtime"), shared, shared / "home")
    assert found is not None and found == shared / "runtime" / "holdfast" and private(found)


def test_sockets_are_in_the_home_where_its_path_is_short(shared):
    home = shared / "home"
    found = runtime_folder(None, shared, home)
    assert found is not None and found.parent == home and private(found)
    assert os.listdir(found) == [] and os.listdir(shared) == ["home"]


def test_a_home_on_a_disk_without_sockets_has_a_folder_elsewhere(shared, monkeypatch):
    class NoSockets(socket.socket):
        def bind(self, address: Any) -> None:
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", NoSockets)
    found = runtime_folder(None, shared, shared / "home")
    assert found is not None and found.parent == shared and private(found)
    assert [each.name for each in (shared / "home").iterdir() if each.is_dir()] == []


def test_every_socket_s_path_can_be_bound_whatever_the_length_of_the_home(shared):
    for length in range(1, 110):
        found = runtime_folder(None, shared, shared / ("h" * length))
        assert found is not None
        path = own_socket(found, ["ssh", "me@gpu1", ""])
        assert path is not None and len(os.fsencode(path)) + 18 <= 104, "ssh appends so much while it makes one"
        assert len(os.fsencode(found / f"ask-4194304-{'0' * 8}")) <= 104


def test_without_any_place_there_is_none(home, shared, tmp_path):
    assert runtime_folder(None, shared / DEEP, home) is None
    assert runtime_folder(None, tmp_path / "missing", home) is None
    assert not list(home.iterdir())


def test_names_that_are_taken_are_tried_again_and_not_used(shared, home, monkeypatch):
    drawn = iter([b"\0" * 6, b"\0" * 6, b"\1" * 6, b"\2" * 6])
    (shared / "hf-000000000000").mkdir(mode=0o700)
    monkeypatch.setattr(
        "holdfast.hosts.socket_folder.os.urandom", lambda count: next(drawn) if count == 6 else b"\7" * count
    )
    assert runtime_folder(None, shared, home) == shared / "hf-010101010101"


def test_a_run_over_ssh_leaves_no_name_in_the_shared_folder(far_bench, shared):
    bench = far_bench()
    bench.write("t.py", "print('up')\n")
    result = bench.submit("--wait", "t.py", env={"TMPDIR": str(shared)})
    assert result.code == 0, result.err
    assert all(not name.startswith("holdfast-") for name in os.listdir(shared))
