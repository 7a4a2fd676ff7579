"""A home of Holdfast on this machine that another account owns or may write to: nothing is run from it, and no key or
program is taken from it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from holdfast.errors import HostError, StorageError
from holdfast.farside.system import closed_home
from holdfast.hosts.host import Local
from holdfast.hosts.shipment import far_side
from holdfast.project import own_home
from holdfast.project.own_home import require_own
from kit.accounts import Account
from kit.homes import furnish

PWNED = "import os\nopen(os.environ['PWNED'], 'w').close()\n"


@pytest.fixture
def planted(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is whole, with a far side which says that it was run. Returns the file that it makes."""
    said = tmp_path / "pwned"
    monkeypatch.setenv("PWNED", str(said))
    linked = bench.home.rename(tmp_path / "linked")
    shutil.copytree(linked, bench.home)  # its files are links to a template of the kit
    for entry in bench.home.glob("farside/*/holdfast/farside/main.py"):
        entry.write_text(PWNED + entry.read_text())
    bench.write("t.py", "print('up')\n")
    return said


def version(home: Path) -> Path:
    return home / "farside" / far_side(home).digest


def said_as(account: Account, home: Path) -> str:
    """What the account is told about the home. In a child: its Python is not for others to run."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(pwd.getpwuid(account.uid).pw_gid)
            os.setuid(account.uid)
            require_own(home)
        except HostError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as source:
        said = source.read()
    os.waitpid(child, 0)
    return said


def give(path: Path, account: Account) -> None:
    for each in (path, *path.rglob("*")):
        os.chown(each, account.uid, account.uid, follow_symlinks=False)


def test_a_home_of_ones_own_is_used(bench, planted):
    assert bench.submit("t.py").code == 0
    assert planted.exists(), "the far side that lies there is the one that runs"


@pytest.mark.parametrize("folder", ["", "farside", "farside/*"])
def test_nothing_is_run_from_a_home_that_another_account_owns(folder, bench, planted, other):
    place = next(bench.home.glob(folder)) if folder else bench.home
    give(place, other)
    result = bench.submit("t.py")
    assert result.code == 245 and not planted.exists()
    assert f"`{place}`: it belongs to another account (`{other.name}`)" in result.err
    assert "sudo -H holdfast" in result.err, "these tests run as root"


@pytest.mark.parametrize(("folder", "mode"), [("", 0o777), ("", 0o775), ("farside", 0o775), ("farside/*", 0o757)])
def test_nothing_is_run_from_a_home_that_others_may_write_to(folder, mode, bench, planted):
    place = next(bench.home.glob(folder)) if folder else bench.home
    bench.home.chmod(0o755)
    place.chmod(mode)
    result = bench.submit("t.py")
    assert result.code == 245 and not planted.exists()
    command = f"chmod go-rwx {bench.home}"
    assert f"If it is yours: {command}\n" in result.err
    subprocess.run(command.split(), check=True)
    assert bench.submit("t.py").code == 0, "the remedy helps"


def test_a_command_examines_its_own_home_once(bench, planted, monkeypatch):
    looked = mock.Mock(wraps=closed_home.look)
    monkeypatch.setattr(own_home, "look", looked)
    assert Local(bench.home, os.environ).argv("nonce")[-2] == str(bench.home)
    assert looked.call_count == 1


@pytest.mark.parametrize("kind", ["owner", "mode"])
def test_a_file_of_the_far_side_that_another_could_change_is_replaced(kind, bench, planted, other):
    bench.home.chmod(0o755)
    entry = version(bench.home) / "holdfast" / "farside" / "main.py"
    entry.chmod(0o664 if kind == "mode" else 0o644)
    if kind == "owner":
        os.chown(entry, other.uid, other.uid)
    assert bench.submit("t.py").code == 0
    assert not planted.exists() and PWNED not in entry.read_text()
    assert not entry.stat().st_mode & 0o022 and entry.stat().st_uid == os.getuid()


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_an_ordinary_user_s_umask_is_no_hindrance(umask, bench):
    """Users with a group of their own often have 002."""
    shutil.rmtree(bench.home)
    bench.write("t.py", "import os\nprint(oct(os.umask(0)))\n")
    before = os.umask(umask)
    try:
        for _ in range(2):
            result = bench.submit("t.py")
            assert result.code == 0 and oct(umask) in result.out, "a run has the user's umask"
        shipped = version(bench.home)
        assert all(not each.stat().st_mode & 0o022 for each in (shipped.parent, shipped, *shipped.rglob("*")))
    finally:
        os.umask(before)


def test_missing_folders_above_the_home_are_made_for_this_account_alone(bench, tmp_path):
    """Else the second command refuses the home that the first has made."""
    place = tmp_path / "a" / "b" / "hold"
    bench.write("t.py", "print('up')\n")
    before = os.umask(0o002)
    try:
        for _ in range(2):
            result = bench.submit("t.py", env={"HOLDFAST_HOME": str(place)})
            assert result.code == 0, result.err
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (place, *place.parents[:2])] == [0o700] * 3


def test_a_home_that_an_older_version_made_under_umask_002_is_closed_and_used(bench, planted):
    """Its folder is for the account alone, so nobody else could get to what lies in it."""
    bench.home.chmod(0o700)
    for place in (bench.home / "farside", version(bench.home)):
        place.chmod(0o775)
    assert bench.submit("t.py").code == 0
    assert not version(bench.home).stat().st_mode & 0o022


def test_root_with_the_home_of_another_account_is_told_how_to_take_its_own(bench, planted, other):
    """As `sudo` leaves HOME in some configurations."""
    home = other.home / ".holdfast"
    shutil.copytree(bench.home, home, symlinks=True)
    give(home, other)
    result = bench.submit("t.py", env={"HOLDFAST_HOME": str(home)})
    assert result.code == 245 and not planted.exists()
    assert f"Holdfast does not use `{home}`: it belongs to another account (`{other.name}`)." in result.err
    assert "sudo -H holdfast" in result.err


def test_an_account_with_a_home_that_root_made_is_told_how_to_get_it(bench, planted, other):
    home = other.home / ".holdfast"
    shutil.copytree(bench.home, home, symlinks=True)
    said = said_as(other, home)
    assert f"sudo chown -R {other.name} {home}" in said and "(`root`)" in said


@pytest.mark.parametrize("change", ["owner", "mode"])
def test_no_key_and_no_program_that_asks_is_taken_from_such_a_home(change, bench, planted, other, tmp_path):
    """A target over SSH is not even asked: the folder has its key and the program that ssh asks by."""
    bench.write("bin/ssh", f"#!/bin/sh\ntouch {tmp_path / 'started'}\nexit 255\n").chmod(0o755)
    bench.write("aml_config/gpu1.compute", "type: remote\naddress: gpu1\n")
    bench.write("t.py", "")
    if change == "owner":
        give(bench.home, other)
    else:
        bench.home.chmod(0o777)
    result = bench.submit("-t", "gpu1", "t.py", env={"HOLDFAST_SSH": str(bench.root / "bin" / "ssh")})
    assert result.code == 245 and str(bench.home) in result.err
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("kind", ["a file", "below a file", "a link to itself"])
@pytest.mark.parametrize("words", [("submit", "t.py"), ("submit", "-t", "gpu1", "t.py")], ids=["here", "over SSH"])
def test_a_home_that_cannot_be_looked_at_is_told_in_a_sentence(kind, words, tmp_path, command, monkeypatch):
    (tmp_path / "t.py").write_text("")
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "gpu1.compute").write_text("type: remote\naddress: gpu1\n")
    (tmp_path / "aml_config" / "project.json").write_text('{"format": 1, "id": "%s"}' % ("0" * 32))
    home = tmp_path / "home"
    command("submit", "--dry-run", "t.py")  # makes the project's own folder
    if kind == "a link to itself":
        home.symlink_to("home")
    else:
        home.write_text("")
    chosen = home / "deep" if kind == "below a file" else home
    with pytest.raises(StorageError, match=re.escape(f"`{chosen}")) as caught:
        require_own(chosen)
    assert "HOLDFAST_HOME" in caught.value.hint
    monkeypatch.setenv("HOLDFAST_HOME", str(chosen))
    done = command(*words)
    assert done.code == StorageError.exit_code and "HOLDFAST_HOME" in done.err, done


def test_a_home_of_the_kit_is_as_holdfast_makes_it(tmp_path):
    """Else the attacks above would attack something else."""
    home = furnish(tmp_path / "home")
    assert not home.stat().st_mode & 0o022


def test_commands_that_read_believe_no_home_of_another_account(bench, planted, other):
    bench.write("t.py", "print(1)\n")
    assert bench.submit("t.py").code == 0
    give(bench.home, other)
    for words in (("history", "list"), ("status",), ("logs",)):
        done = bench.run(*words)
        assert (done.code, done.out) == (245, ""), words
        assert f"`{bench.home}`" in done.err


@pytest.mark.parametrize("words", [("submit", "t.py"), ("project", "trust", "--yes")], ids=" ".join)
def test_a_shared_folder_is_no_home_and_nobody_is_told_to_take_it(bench, tmp_path, words):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    bench.write("t.py", "print(1)\n")
    if words[0] == "project":
        (bench.root / ".holdfast").mkdir()
        (bench.root / ".holdfast" / "runs").mkdir()
    done = bench.run(*words, env={"HOLDFAST_HOME": str(shared)})
    assert done.code != 0
    assert "chmod" not in done.err and "chown" not in done.err
    assert list(shared.iterdir()) == []
    assert not (bench.root / ".holdfast" / "origin.json").exists()


def test_a_home_behind_a_link_is_not_to_be_removed(holdfast, isolated, tmp_path):
    (tmp_path / "scratch").mkdir()
    (isolated / ".holdfast").symlink_to(tmp_path / "scratch")
    done = holdfast("history", "list", cwd=isolated)
    assert "rm " not in done.err
