"""Lines of `authorized_keys`: added and removed, with all others unchanged."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.operations.authorized_keys import add_line, remove_lines
from holdfast.farside.system.refusal import Refused

BODY = "AAAAC3NzaC1lZDI1NTE5AAAAIGn5rfVjW8P0s0lVbLrqHqIh2mNcPyWbbqz2cDpV4Abc"
LINE = f"ssh-ed25519 {BODY} holdfast gpu1 me@laptop"
OTHER = "AAAAB3NzaC1yc2EAAAADAQABAAABAQDf9s8dfh3k4h5k3jh45kj3h45kj3h4k5jh"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".ssh" / "authorized_keys"


def given(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700)
    file.write_bytes(content)


def test_only_the_owner_can_use_the_folder_and_the_file(file):
    assert add_line(str(file), LINE) is True
    assert file.read_text() == LINE + "\n"
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("before", [b"", b"# a\n\xff\xfe\r\n", b"no-pty ssh-rsa " + OTHER.encode() + b" x"])
def test_other_lines_and_the_mode_stay_as_they_are(file, before):
    given(file, before)
    file.chmod(0o640)
    assert add_line(str(file), LINE)
    newline = b"" if not before or before.endswith(b"\n") else b"\n"
    assert file.read_bytes() == before + newline + LINE.encode() + b"\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert remove_lines(str(file), BODY) == 1
    assert file.read_bytes() == before + newline
    assert [each.name for each in file.parent.iterdir()] == ["authorized_keys"], "no temporary file stays"


def test_a_key_that_is_there_is_not_added_again_and_a_commented_one_does_not_count(file):
    given(file, f'command="x y" ssh-ed25519 {BODY} other'.encode())
    assert add_line(str(file), LINE) is False
    commented = f"#ssh-ed25519 {BODY}\n # ssh-ed25519 {BODY}\n"
    file.write_text(commented)
    assert add_line(str(file), LINE) is True
    assert remove_lines(str(file), BODY) == 1
    assert file.read_text() == commented


@pytest.fixture
def linked(file: Path, tmp_path: Path) -> Path:
    """The target of the account's file, which is a link, in a separate folder."""
    real = tmp_path / "elsewhere" / "keys"
    given(real, b"# a\n")
    real.chmod(0o640)
    file.parent.mkdir()
    file.symlink_to(real)
    return real


def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced_whole(file, linked):
    inode = linked.stat().st_ino
    assert add_line(str(file), LINE)
    assert file.is_symlink()
    assert linked.read_text() == f"# a\n{LINE}\n"
    assert linked.stat().st_ino != inode, "a new file in its place: at no moment is it half-written"
    assert linked.stat().st_mode & 0o777 == 0o640
    assert remove_lines(str(file), BODY) == 1
    assert (file.is_symlink(), linked.read_text()) == (True, "# a\n")
    assert [each.name for each in linked.parent.iterdir()] == ["keys"]


def test_a_disk_that_fills_up_takes_no_line_away(file, linked, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        add_line(str(file), LINE)
    assert linked.read_text() == "# a\n"
    assert [each.name for each in linked.parent.iterdir()] == ["keys"]


def test_in_a_folder_that_takes_no_new_file_a_line_is_appended_and_none_removed(file, linked, monkeypatch):
    """As where administrators manage the keys: the account may write to its file but not to the folder."""
    opened = os.open

    def only_old_ones(path: Any, flags: int, *more: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, flags, *more)

    monkeypatch.setattr(os, "open", only_old_ones)
    inode = linked.stat().st_ino
    assert add_line(str(file), LINE)
    assert (linked.read_text(), linked.stat().st_ino) == (f"# a\n{LINE}\n", inode)
    with pytest.raises(Refused, match="stays in") as refused:
        remove_lines(str(file), BODY)
    assert (refused.value.kind, BODY[:40] in refused.value.hint) == ("key-stays", True)
    assert linked.read_text() == f"# a\n{LINE}\n"


@pytest.mark.parametrize("line", [f"{LINE}\n{LINE}", f"{LINE}\r", "x\0y", "", "ssh-ed25519", "ssh-ed25519 short c", 7])
def test_what_is_not_one_line_of_a_key_is_refused(file, line):
    with pytest.raises(Refused):
        add_line(str(file), line)
    assert not file.exists()


def test_removing_a_key_that_is_not_there_changes_nothing(file):
    assert remove_lines(str(file), BODY) == 0
    given(file, b"# a")
    stamp = file.stat()
    assert remove_lines(str(file), BODY) == 0
    assert os.stat(file) == stamp
    with pytest.raises(Refused):
        remove_lines(str(file), "")
