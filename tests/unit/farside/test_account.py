"""The far side's care for an account: `authorized_keys`, logouts, the Python of a login."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside.account import add_line, chosen_python, ends_at_logout, remove_lines
from holdfast.farside.refusal import Refused

BODY = "AAAAC3NzaC1lZDI1NTE5AAAAIGn5rfVjW8P0s0lVbLrqHqIh2mNcPyWbbqz2cDpV4Abc"
LINE = f"ssh-ed25519 {BODY} holdfast gpu1 me@laptop"
OTHER = "AAAAB3NzaC1yc2EAAAADAQABAAABAQDf9s8dfh3k4h5k3jh45kj3h45kj3h4k5jh"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".ssh" / "authorized_keys"


def given(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700)
    file.write_bytes(content)


def test_folder_and_file_are_made_for_nobody_else(file: Path) -> None:
    assert add_line(str(file), LINE) is True
    assert file.read_text() == LINE + "\n"
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("before", [b"", b"# a\n\xff\xfe\r\n", b"no-pty ssh-rsa " + OTHER.encode() + b" x"])
def test_other_lines_and_the_mode_stay_as_they_are(file: Path, before: bytes) -> None:
    given(file, before)
    file.chmod(0o640)
    assert add_line(str(file), LINE)
    newline = b"" if not before or before.endswith(b"\n") else b"\n"
    assert file.read_bytes() == before + newline + LINE.encode() + b"\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert remove_lines(str(file), BODY) == 1
    assert file.read_bytes() == before + newline
    assert [each.name for each in file.parent.iterdir()] == ["authorized_keys"], "no temporary file stays"


def test_a_key_that_is_there_is_not_added_again_whatever_stands_around_it(file: Path) -> None:
    given(file, f'command="x y" ssh-ed25519 {BODY} other'.encode())
    assert add_line(str(file), LINE) is False


def test_a_commented_key_does_not_count(file: Path) -> None:
    given(file, f"#ssh-ed25519 {BODY}\n # ssh-ed25519 {BODY}\n".encode())
    assert add_line(str(file), LINE) is True
    assert remove_lines(str(file), BODY) == 1
    assert file.read_text() == f"#ssh-ed25519 {BODY}\n # ssh-ed25519 {BODY}\n"


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    given(tmp_path / "elsewhere" / "keys", b"# a\n")
    file.parent.mkdir()
    file.symlink_to(tmp_path / "elsewhere" / "keys")
    assert add_line(str(file), LINE)
    assert file.is_symlink()
    assert (tmp_path / "elsewhere" / "keys").read_text() == f"# a\n{LINE}\n"


@pytest.mark.parametrize("line", [f"{LINE}\n{LINE}", f"{LINE}\r", "x\0y", "", "ssh-ed25519", "ssh-ed25519 short c", 7])
def test_what_is_not_one_line_of_a_key_is_refused(file: Path, line: object) -> None:
    with pytest.raises(Refused):
        add_line(str(file), line)  # type: ignore[arg-type]
    assert not file.exists()


def test_removing_a_key_that_is_not_there_changes_nothing(file: Path) -> None:
    assert remove_lines(str(file), BODY) == 0
    given(file, b"# a")
    stamp = file.stat()
    assert remove_lines(str(file), BODY) == 0
    assert os.stat(file) == stamp
    with pytest.raises(Refused):
        remove_lines(str(file), "")


@pytest.mark.parametrize(
    ("texts", "ends"),
    [
        ([], False),
        (["[Login]\n#KillUserProcesses=yes\n"], False),
        (["[Login]\nKillUserProcesses=yes\n"], True),
        (["KillUserProcesses = true", "KillUserProcesses=no"], False),
        (["KillUserProcesses=yes\nKillExcludeUsers=root me"], False),
        (["KillUserProcesses=yes\nKillOnlyUsers=you"], False),
        (["KillUserProcesses=yes\nKillOnlyUsers=you me"], True),
    ],
)
def test_what_logind_is_told_about_a_users_processes(texts: list[str], ends: bool) -> None:
    assert ends_at_logout(texts, "me") is ends


@pytest.mark.parametrize(
    ("said", "python"),
    [
        ("holdfast-python:3:/opt/conda/bin/python\nholdfast-python3:3:/usr/bin/python3\n", "/opt/conda/bin/python"),
        ("holdfast-python:2:/usr/bin/python\nholdfast-python3:3:/usr/bin/python3\n", "/usr/bin/python3"),
        ("Welcome!\x1b[0mholdfast-python3:3:/usr/bin/python 3\r\nbye", "/usr/bin/python 3"),
        ("print(holdfast-python:3:relative)", ""),
        ("", ""),
    ],
)
def test_the_python_is_found_in_what_a_login_prints(said: str, python: str) -> None:
    assert chosen_python(said) == python
