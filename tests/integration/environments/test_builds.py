"""Builds under pressure: requested by many at once, killed at any moment, on a disk that is too small."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pytest

from integration.environments.conftest import Managed
from integration.runs.conftest import is_gone
from kit.disks import resize, small_disk
from kit.package_server import Index, package_index
from kit.suite.missing_parts import leave_out
from kit.suite.moments import Moment
from kit.waiting import wait_for
from kit.wheels import make_wheel

pytestmark = pytest.mark.time_limit(300, "builds environments many times over")

PACKAGES = ("jinja2==3.1.4", "attrs==24.2.0", "idna==3.10", "six==1.16.0", "packaging==24.1")
WHOLE = """
import base64, hashlib, importlib.metadata as metadata
import attr, idna, jinja2, packaging.version, six
checked = 0
for package in metadata.distributions():
    for file in package.files:
        if file.hash:
            data = file.locate().read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, data).digest()).rstrip(b"=").decode()
            assert digest == file.hash.value, file
            checked += 1
print(sorted(each.metadata["Name"].lower() for each in metadata.distributions()), checked > FILES)
"""
"""Lists the packages, after comparing every file with its package's record."""
EXPECTED = "['attrs', 'bulky', 'idna', 'jinja2', 'markupsafe', 'packaging', 'six'] True\n"
RUNS = 12


class Stage(Enum):
    """The progress of a build, independent of the machine's speed: a word of its log, or a file in its folder."""

    LINKING = "bulky/folder0"
    SEALING = "bulky/__pycache__"
    INSTALLING = " pip sync "
    RESOLVING = " pip compile "
    MAKING = " venv "


def test_many_runs_that_want_one_environment_resolve_and_build_it_once(managed: Managed) -> None:
    managed.wants("six==1.16.0", "idna")
    managed.write("t.py", "import idna, six\nprint(six.__version__)\n")

    clients = [managed.popen("submit", "-c", "local", "t.py") for _ in range(RUNS)]
    ended = [client.communicate(timeout=180) for client in clients]

    assert [client.returncode for client in clients] == [0] * RUNS, ended[0][1].decode()
    assert {out for out, _ in ended} == {b"1.16.0\n"}
    runs = [each.name for each in (managed.root / ".holdfast" / "runs").iterdir()]
    events = [managed.environment(run) for run in runs]
    assert len({event["id"] for event in events}) == 1
    assert sorted(event["built"] for event in events) == [False] * (RUNS - 1) + [True]
    logs = managed.control_logs()
    assert len(logs) == RUNS
    assert sum(log.count(" pip compile ") for log in logs) == 1
    assert sum(log.count(" pip sync ") for log in logs) == 1


@pytest.mark.moments(*(stage.name for stage in Stage))
def test_a_build_killed_at_any_moment_never_leaves_a_broken_environment(
    managed: Managed, bulky: Index, moment: Moment
) -> None:
    managed.wants(f"--extra-index-url {bulky.url()}", *PACKAGES, "bulky==1.0")
    stage = Stage[moment.stage]
    managed.write("t.py", WHOLE.replace("FILES", str(files_of(stage))))

    run_id = managed.start("-c", "local", "t.py")
    supervisor = managed.holder(run_id, 1)
    wait_for(lambda: _has_reached(managed, run_id, stage) or is_gone(supervisor), 180, stage.value)
    moment.pause(0.05 if stage in (Stage.LINKING, Stage.SEALING) else 0.3)
    _kill_all(supervisor)

    managed.event(run_id, "ended")
    result = managed.submit("t.py")

    assert (result.code, result.out) == (0, EXPECTED), result.err
    (environment,) = managed.built()
    left = [each for each in environment.parent.iterdir() if each.is_dir() and each != environment]
    assert left == [], "what the killed build made has gone"
    assert managed.submit("t.py").out == EXPECTED
    assert not managed.environment()["built"]


def files_of(stage: Stage) -> int:
    """Of the package `bulky`: so many that there is time to strike while they are installed."""
    return 4000 if stage in (Stage.LINKING, Stage.SEALING) else 100


@pytest.fixture
def bulky(tmp_path: Path, moment: Moment) -> Iterator[Index]:
    """An index with that package."""
    numbers = range(files_of(Stage[moment.stage]))
    files = {f"bulky/folder{number // 100}/m{number}.py": f"number = {number}\n" for number in numbers}
    make_wheel(tmp_path / "wheels", "bulky", "1.0", {"bulky/__init__.py": "", **files})
    with package_index(tmp_path / "wheels") as index:
        yield index


def test_a_disk_that_fills_up_leaves_no_environment_and_says_what_to_do(managed: Managed) -> None:
    managed.wants("numpy")
    managed.write("t.py", "import numpy\nprint(numpy.arange(3).sum())\n")
    with contextlib.ExitStack() as disks:
        _mount(managed.home, 24, disks)

        result = managed.submit("t.py")

        assert result.code == 250, result.err
        assert "No space left" in result.err
        assert "holdfast experiment clean --environments" in result.err
        assert not managed.built()
        resize(managed.home, 400)
        again = managed.submit("t.py")
        assert (again.code, again.out) == (0, "3\n"), again.err


def _has_reached(managed: Managed, run_id: str, stage: Stage) -> bool:
    if stage in (Stage.RESOLVING, Stage.MAKING, Stage.INSTALLING):
        return stage.value in (managed.far(run_id) / "control_log").read_text()
    return bool(list((managed.home / "environments").glob(f"*/lib/python3*/site-packages/{stage.value}")))


def _kill_all(supervisor: int) -> None:
    """The supervisor first, so that it writes nothing; then the installer and its processes."""
    from holdfast.farside.system.processes import descendants

    left = descendants(supervisor, set)
    for pid in (supervisor, *(process.pid for process in left)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _mount(folder: Path, megabytes: int, disks: contextlib.ExitStack) -> None:
    try:
        disks.enter_context(small_disk(folder, megabytes))
    except subprocess.CalledProcessError:
        leave_out("the right to mount")
