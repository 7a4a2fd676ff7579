"""A guardian that is killed before its supervisor has the run's lock: the process that finds no owner writes the end,
and a supervisor that comes later does nothing. One of them has the run, never both."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.farside.environments.built_environment import Environment
from holdfast.farside.environments.prepare import PreparedEnvironment
from holdfast.farside.operations import storage
from holdfast.farside.run import run_files
from holdfast.farside.run.guarded import FromGuardian, Helpers
from holdfast.farside.run.liveness import adjudicate, is_alive
from holdfast.farside.run.run_group import RunGroup
from holdfast.farside.run.supervisor import Supervisor
from holdfast.farside.system import kernel
from holdfast.farside.system.layout import GUARDIAN_BYTE, SUPERVISOR_BYTE, USE_BYTE, Home
from holdfast.farside.system.refusal import Refused

PLAN = {"format": 1, "project": "p", "run": "r_1", "generation": "", "limits": {"grace": 1}}


class Brief(Supervisor):
    """A run whose script has ended before the first look."""

    def _run(self) -> dict[str, Any]:
        return {"reason": "completed", "code": 0, "signal": None}


@pytest.fixture
def folder(home: Home) -> Path:
    folder = Path(home.run("p", "r_1"))
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "lock").touch()
    run_files.write_created(str(folder), PLAN, "machine")
    return folder


def _events(folder: Path) -> list[str]:
    return [json.loads(line)["e"] for line in (folder / "journal.jsonl").read_text().splitlines()]


def _supervise(folder: Path, kind: type[Supervisor] = Brief) -> int:
    """In a separate process, as a guardian starts it; returns its exit code."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            entered, writer = os.pipe()
            os.close(writer)
            from_guardian = FromGuardian(RunGroup(), Helpers(), entered)
            kind(Home(str(folder.parents[2])), str(folder), {}, list(os.pipe()), None, from_guardian).main()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "being written"])
def test_a_run_whose_end_is_written_is_left_alone(folder, is_written):
    if is_written:
        adjudicate(str(folder))
        assert _events(folder)[-1] == "ended"
    before = _events(folder)
    lock = os.open(folder / "lock", os.O_RDWR)
    try:
        assert is_written or kernel.lock(lock, SUPERVISOR_BYTE)
        assert _supervise(folder) == 0
    finally:
        os.close(lock)
    assert _events(folder) == before


def test_a_run_without_an_end_is_taken_up(folder):
    before = _events(folder)
    assert _supervise(folder) == 0
    assert _events(folder) == [*before, "ended"]


def test_an_environment_is_free_before_its_run_is_said_to_have_ended(folder):
    class Watched(Brief):
        def _run(self) -> dict[str, Any]:
            environment = Environment(self.home, "abc")
            environment.ensure(_build(environment), False, _nothing, _nothing)
            self.prepared = cast(PreparedEnvironment, SimpleNamespace(environment=environment))
            assert _is_held(environment)
            return super()._run()

        def _write_ended(self, ending: dict[str, Any]) -> None:
            assert self.prepared is not None
            assert not _is_held(self.prepared.environment)
            super()._write_ended(ending)

    assert _supervise(folder, Watched) == 0
    assert _events(folder)[-1] == "ended"


def _is_held(environment: Environment) -> bool:
    """Seen from another process, since a process does not conflict with its own locks."""
    child = os.fork()
    if child == 0:
        os._exit(0 if kernel.lock_holder(environment.path + ".lock", USE_BYTE) is None else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def _build(environment: Environment) -> Callable[[], dict[str, Any]]:
    def build() -> dict[str, Any]:
        os.mkdir(environment.path)
        return {}

    return build


def _nothing(*_: object, **named: object) -> None:
    pass


def test_a_cancel_that_came_before_the_supervisor_counts(folder: Path) -> None:
    class Asking(Brief):
        def _run(self) -> dict[str, Any]:
            self.attendance.check_stop()
            return super()._run()

    (folder / "cancel").write_text(json.dumps({"detail": "by me", "grace": None}))
    assert _supervise(folder, Asking) == 0
    ended = json.loads((folder / "journal.jsonl").read_text().splitlines()[-1])
    assert (ended["reason"], ended["detail"]) == ("canceled", "by me")


@pytest.mark.parametrize("byte", [GUARDIAN_BYTE, SUPERVISOR_BYTE])
def test_a_run_lives_and_is_not_removed_while_one_of_its_owners_does(folder: Path, byte: int) -> None:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        kernel.lock(os.open(folder / "lock", os.O_RDWR), byte)
        os.write(tell, b"held")
        signal.pause()
    try:
        os.read(told, 4)
        assert is_alive(str(folder))
        with pytest.raises(Refused, match="still alive"):
            storage.remove(Home(str(folder.parents[2])), {"project": "p", "run": "r_1"})
        assert _events(folder) == ["created"]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert not is_alive(str(folder))
