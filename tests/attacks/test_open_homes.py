"""Folders in Holdfast's home that others may write to, or put another in the place of. What lies there could be theirs:
nothing of it is run, read or believed. The command that the refusal names closes them."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HostError
from holdfast.farside.engines.owners import engine_named
from holdfast.farside.environments import uv
from holdfast.farside.environments.built_environment import Environment
from holdfast.farside.system.closed_home import require_closed
from holdfast.farside.system.layout import Home
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused
from holdfast.hosts.keys import ensure_key
from holdfast.project.own_home import require_own
from integration.remote.benches import FarBench
from kit.accounts import premises

STRANGER = 12345
FOLDERS = (
    "environments",
    "pythons",
    "cache",
    "runs",
    "locks",
    "share",
    "tools",
    "objects",
    "images",
    "keys",
    "run-1a2b",
)
INNER = ("environments/e", "environments/e/.bytecode", "tools/uv-1", "pythons/cpython", "cache/uv", "runs/p", "locks/x")
FILES = ("settings.json", "askpass")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home that others may enter, as one that a user made has it. All that is in it is closed to their writing."""
    home = tmp_path / "hf"
    for name in (*FOLDERS, *INNER):
        (home / name).mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (home / name).write_text("{}")
    for each in (home, *home.rglob("*")):
        each.chmod(0o755)
    require_own(home)
    return home


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others can reach: pytest's own are closed to them."""
    with premises() as folder:
        yield folder


def refused(home: Path) -> tuple[str, str]:
    """What is told, and the command that goes with it: the same here and on a machine that is reached over SSH."""
    with pytest.raises(HostError) as near:
        require_own(home)
    with pytest.raises(Refused) as far:
        require_closed(Home(str(home)))
    assert near.value.message == far.value.message
    hint = str(near.value.hint)
    command = re.fullmatch(r"If it is yours: (.*)\nIf not, choose another folder: export .*", hint)
    assert (command.group(1) if command else "") in far.value.hint
    return near.value.message, command.group(1) if command else ""


def paste(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=True)


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777])
@pytest.mark.parametrize("name", [*FOLDERS, *INNER, *FILES])
def test_a_home_with_something_that_others_may_write_to_is_refused_until_it_is_closed(name, mode, place):
    (place / name).chmod(mode)
    said, command = refused(place)
    assert f"`{place / name}`: others may write to it." in said
    paste(command)
    require_own(place)
    require_closed(Home(str(place)))


@pytest.mark.parametrize("name", [*FOLDERS, *INNER])
def test_what_lies_in_a_home_that_nobody_else_can_enter_needs_no_more(name, place):
    """As earlier versions made it under umask 002."""
    (place / name).chmod(0o775)
    place.chmod(0o700)
    require_own(place)
    require_closed(Home(str(place)))


@pytest.mark.parametrize("inner", ["", "e", "e/.bytecode"])
def test_a_link_out_of_the_home_leads_to_a_folder_that_is_as_closed(inner, place, tmp_path):
    disk = tmp_path / "disk with space"
    (place / "environments").rename(disk)
    (place / "environments").symlink_to(disk)
    place.chmod(0o700)
    require_own(place)
    (disk / inner).chmod(0o775)
    said, command = refused(place)
    assert str(disk / inner) in said
    paste(command)
    require_own(place)


@pytest.mark.parametrize("mode", [0o775, 0o777])
@pytest.mark.parametrize("of", ["the home", "a link"])
def test_a_folder_above_in_which_others_may_put_another_is_refused(of, mode, shared, place):
    above = shared / "above"
    above.mkdir()
    home = place
    if of == "the home":
        home = place.rename(above / "hf")
    else:
        (place / "runs").rename(above / "runs")
        (place / "runs").symlink_to(above / "runs")
    above.chmod(mode)
    said, command = refused(home)
    assert f"Others may write to `{above}`, and so replace" in said
    paste(command)
    require_own(home)
    above.chmod(0o1777)
    require_own(home)  # as /tmp: each may replace only what is its own


def test_what_a_group_may_do_in_an_administrator_s_folder_is_the_administrator_s_word(shared, place, needs):
    needs(root=True)
    lab = shared / "lab"
    lab.mkdir()
    home = place.rename(lab / "hf")
    os.chown(lab, STRANGER, STRANGER)
    lab.chmod(0o775)
    require_own(home)
    lab.chmod(0o777)
    assert refused(home)[1] == "", "no command of this account closes it"


@pytest.mark.parametrize("name", ["keys", "projects", "environments/e", "tools/uv-1", "pythons/cpython", "locks/x"])
def test_what_another_account_put_there_is_refused_in_a_home_that_was_closed_since(name, place, needs):
    needs(root=True)
    (place / name).mkdir(exist_ok=True)
    os.chown(place / name, STRANGER, STRANGER)
    place.chmod(0o700)
    assert f"`{place / name}`: it belongs to another account." in refused(place)[0]


def test_an_engine_that_others_could_have_written_is_not_loaded_and_its_owner_is_told(place, needs):
    needs(root=True)
    path = place / "engines" / "lab.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    path.chmod(0o664)
    with pytest.raises(Refused) as open_to_others:
        engine_named(Home(str(place)), "lab")
    assert open_to_others.value.hint == f"If it is yours: chmod go-w {path}"
    os.chown(path, STRANGER, STRANGER)
    with pytest.raises(Refused) as anothers:
        engine_named(Home(str(place)), "lab")
    assert anothers.value.hint == f"If it is yours: sudo chown -R root {path}"


def test_an_environment_of_another_account_is_not_used(tmp_path, needs):
    """A run that waited in a queue was let in before it was put there."""
    needs(root=True)
    home = Home(str(tmp_path / "home"))
    environment = Environment(home, "e")
    Path(environment.path).mkdir()
    (Path(environment.path) / ".complete").write_text("{}")
    os.chown(environment.path, STRANGER, STRANGER)
    with pytest.raises(Refused, match="belongs to another account"):
        environment.use()
    with pytest.raises(Refused, match="belongs to another account"):
        environment.ensure(dict, False, lambda _: None, lambda *_, **__: None)


@pytest.mark.parametrize("change", ["owner", "mode"])
def test_an_installer_that_another_could_change_is_sent_anew(change, tmp_path, needs):
    needs(root=True)
    home = Home(str(tmp_path / "home"))
    program = Path(uv.path_of(home, "uv-1.0"))
    program.parent.mkdir(parents=True)
    program.write_text("")
    uv.require_tools(home, ["uv-1.0"])
    if change == "owner":
        os.chown(program, STRANGER, STRANGER)
    else:
        program.chmod(0o775)
    with pytest.raises(Refused, match="not here yet"):
        uv.require_tools(home, ["uv-1.0"])


@pytest.mark.parametrize("change", ["owner", "mode", "link"])
def test_the_public_half_of_a_key_that_another_put_there_is_not_used(change, tmp_path, needs):
    needs("ssh-keygen", root=True)
    made = ensure_key(tmp_path / "keys" / "gpu1-00000000", "mine", dict(os.environ))
    public = made.path.with_name(made.path.name + ".pub")
    theirs = ensure_key(tmp_path / "theirs", "theirs", dict(os.environ))
    public.write_text(theirs.line + "\n")
    if change == "owner":
        os.chown(public, STRANGER, STRANGER)
    elif change == "mode":
        public.chmod(0o666)
    else:
        public.unlink()
        public.symlink_to(tmp_path / "theirs.pub")
    assert ensure_key(made.path, "mine", dict(os.environ)).body == made.body


def open_to_others(home: Path) -> Iterator[Path]:
    """What others may write to, as far as they can get."""
    for entry in os.scandir(home):
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & 0o022:
            yield Path(entry.path)
        elif entry.is_dir(follow_symlinks=False) and status.st_mode & 0o055:
            yield from open_to_others(Path(entry.path))


def test_a_user_with_umask_002_gets_a_home_that_is_closed(bench: Any):
    """The user made its folder, so others may enter it. The run is the user's, so it has the umask."""
    home = bench.home.with_name("hf")
    home.mkdir()
    home.chmod(0o755)
    bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/conda_dependencies.yml", "dependencies: []\n")
    bench.write("t.py", "import os, sys\nprint(sys.prefix, oct(os.umask(0)))\n")
    before = os.umask(0o002)
    try:
        for _ in range(2):
            done = bench.submit("t.py", env={"HOLDFAST_HOME": str(home)})
            assert done.code == 0, done.err
            assert f"{home}/environments/" in done.out and "0o2\n" in done.out
    finally:
        os.umask(before)
    assert {"environments", "locks", "runs"} <= set(os.listdir(home))
    assert list(open_to_others(home)) == []
    (environment,) = (path.parent for path in home.glob("environments/*/.complete"))
    assert [each for each in environment.rglob("*") if each.lstat().st_mode & 0o022 and not each.is_symlink()] == []


def test_folders_that_are_missing_above_are_closed_too(tmp_path):
    before = os.umask(0o002)
    try:
        make_private(str(tmp_path / "a" / "b" / "c"))
        make_private(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(before)
    assert {stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("a", "a/b", "a/b/c")} == {0o700}
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private(str(tmp_path / "file"))


def test_a_box_over_ssh_is_refused_in_the_same_way(far_bench: Callable[[], FarBench]):
    bench = far_bench()
    bench.write("t.py", "print('up')\n")
    assert bench.submit("--wait", "t.py").code == 0
    bench.home.chmod(0o755)
    (bench.home / "runs").chmod(0o777)
    done = bench.submit("--wait", "t.py")
    assert done.code == 245 and f"`{bench.home / 'runs'}`: others may write" in done.err
    command = re.search(r"If it is yours, on `[^`]+`: (.*)", done.err)
    assert command
    paste(command.group(1))
    assert bench.submit("--wait", "t.py").code == 0
