"""Files under temporary names: nobody can guess one, and what lies there is neither followed nor replaced."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from os import scandir
from pathlib import Path
from unittest import mock

import pytest

from holdfast.farside.system.closed_home import require_closed
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused
from holdfast.shown_text import pasted
from holdfast.whole_files import create_new, whole, write_durably, write_once, write_whole
from kit.planted import tree

PIDS = 3


def planted(folder: Path, victim: Path, *patterns: str) -> list[Path]:
    """Links under the names that this process, or one that begins soon, would use if they had only its number."""
    links = []
    for pattern in patterns:
        for pid in range(os.getpid(), os.getpid() + PIDS):
            link = folder / (pattern % pid)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(victim)
            links.append(link)
    return links


@pytest.fixture
def victim(isolated: Path) -> Path:
    path = isolated / "victim"
    path.write_text("precious\n")
    return path


def test_a_new_target_is_not_written_through_a_name_of_a_clone(tmp_path, victim, command):
    links = planted(tmp_path / "aml_config", victim, ".mine.runconfig.new-%d")
    done = command("runconfiguration", "create", "-n", "mine", "-t", "local")
    assert done.code == 0, done.err
    assert victim.read_text() == "precious\n"
    assert all(link.is_symlink() for link in links)


@pytest.mark.parametrize("write", [create_new, lambda path: write_durably(path, b"x")])
def test_what_is_made_new_follows_no_link(tmp_path, victim, write):
    for target in (victim, tmp_path / "nowhere"):
        link = tmp_path / f"link-{target.name}"
        link.symlink_to(target)
        with pytest.raises(FileExistsError):
            write(link)
    assert victim.read_text() == "precious\n" and not (tmp_path / "nowhere").exists()


def test_a_link_in_the_place_of_a_whole_file_is_replaced_and_its_target_stays(tmp_path, victim):
    link = tmp_path / "record.json"
    link.symlink_to(victim)
    assert not write_once(link, b"new")
    write_whole(link, b"new")
    assert not link.is_symlink() and link.read_bytes() == b"new"
    assert victim.read_text() == "precious\n"


def test_a_temporary_name_is_random_each_time(tmp_path):
    names = set()
    for _ in range(20):
        with whole(tmp_path / "a.json") as temporary:
            temporary.write_bytes(b"{}")
            names.add(temporary.name)
    assert len(names) == 20
    assert all(re.fullmatch(r"\.hf-new-[0-9a-f]{16}", name) for name in names)


def test_the_machines_name_is_not_written_through_a_planted_link(tmp_path, victim, monkeypatch):
    from holdfast.farside.machine import identity

    planted(tmp_path, victim, "machine.new-%d")
    monkeypatch.setattr(identity, "_first_line", lambda paths: "" if victim not in paths else "x")
    identity._kept(Home(str(tmp_path)))
    assert victim.read_text() == "precious\n"


NAMES = ("runs", "objects", "environments", "share", "locks", "tools")
WAYS = ("a folder", "a link of theirs", "a link to theirs")


@pytest.mark.parametrize(("name", "how"), [*zip(NAMES, WAYS * 2, strict=True), ("runs", WAYS[1]), ("runs", WAYS[2])])
def test_a_folder_of_the_home_that_is_anothers_is_not_used(name, how, tmp_path, isolated, command, needs):
    needs(root=True)
    home = Path(os.environ["HOLDFAST_HOME"])
    home.mkdir(mode=0o700)
    theirs = isolated / "theirs"
    theirs.mkdir()
    if how == "a folder":
        (home / name).mkdir()
        os.chown(home / name, 12345, 12345)
    else:
        (home / name).symlink_to(theirs)
        os.chown(home / name if how == "a link of theirs" else theirs, 12345, 12345, follow_symlinks=False)
    before = tree(theirs)
    (tmp_path / "train.py").write_text("print(1)\n")
    done = command("submit", "train.py")
    assert done.code == 245 and f"`{home / name}`: it belongs to another account" in done.err
    assert tree(theirs) == before
    with pytest.raises(Refused):
        require_closed(Home(str(home)))


@pytest.mark.parametrize("dangling", ["cache", "objects", "share", "tools"])
def test_a_link_that_leads_nowhere_does_not_end_the_search(dangling, tmp_path, needs):
    """The folder's order decides what is looked at first, so several names are tried."""
    needs(root=True)
    home = Home(str(tmp_path / "home"))
    os.makedirs(home.runs())
    os.chown(home.runs(), 12345, 12345)
    (tmp_path / "home" / dangling).symlink_to("/nowhere")
    with mock.patch("os.scandir", _links_first), pytest.raises(Refused, match="/runs`"):
        require_closed(home)


@contextlib.contextmanager
def _links_first(path: str) -> Iterator[list[os.DirEntry[str]]]:
    with scandir(path) as entries:
        yield sorted(entries, key=lambda entry: not entry.is_symlink())


@pytest.mark.parametrize("how", ["a folder", "a link to theirs"])
def test_who_once_used_sudo_is_told_how_to_keep_the_runs(how, tmp_path, needs, monkeypatch):
    needs(root=True)
    home = Home(str(tmp_path / "home"))
    os.makedirs(home.path)
    runs = tmp_path / "disk" / "its runs" if how == "a link to theirs" else Path(home.runs())
    runs.mkdir(parents=True)
    if how == "a link to theirs":
        os.symlink(runs, home.runs())
        os.chown(home.runs(), 12345, 12345, follow_symlinks=False)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Refused) as caught:
        require_closed(home)
    command = f"sudo chown -R 12345 {pasted(str(runs))}"
    here, elsewhere = caught.value.hint.splitlines()
    assert here == f"If it is yours, on `{os.uname().nodename}`: {command}"
    assert elsewhere == "If not, choose another folder on that machine: holdfast computetarget attach … --home DIR"


def test_a_link_of_the_user_to_a_disk_of_the_user_is_used(tmp_path, isolated, command):
    home = Path(os.environ["HOLDFAST_HOME"])
    home.mkdir(mode=0o700)
    (isolated / "disk").mkdir()
    (home / "runs").symlink_to(isolated / "disk")
    (tmp_path / "train.py").write_text("print(1)\n")
    assert command("submit", "train.py").code == 0
    assert command("history", "list", "--query", "[].status").out.split() == json.dumps(["Completed"], indent=2).split()
