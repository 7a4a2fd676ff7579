"""A process that holds GPU memory after the end is ended if it belongs to the run; no other process ever is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from holdfast.farside.gpu.samples import Row, Samples
from holdfast.farside.gpu.watch import sampler_child
from holdfast.farside.gpu.watch.process_owner import Belonging
from holdfast.farside.gpu.watch.sampler_child import Sampling, end_left
from holdfast.farside.system import processes
from holdfast.farside.system.children import Attendant, CannotStart
from kit.gpu_values import GIB, row, samples, uuid
from kit.waiting import wait_for

GENERATION = "18d2721bfe8f"
NO_PROCESS = 3_999_999
"""No process of this machine."""


class Made:
    """Stands in for a sampler whose driver names these processes as the run's, while `is_there` is true."""

    def __init__(self, *pids: int, is_there: Callable[[int], bool] = lambda pid: True) -> None:
        self.pids, self.is_there, self.pid = pids, is_there, 0
        self.asked = 0

    def look_now(self) -> tuple[Row, ...]:
        there = tuple(pid for pid in self.pids if self.is_there(pid))
        return (row(0, own=there, own_memory=GIB if there else 0),)

    def samples(self) -> Samples:
        return samples([row()])

    def belonging(self) -> Belonging:
        self.asked += 1
        return Belonging(NO_PROCESS, GENERATION)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_child, "GRACE", 0.05)
    monkeypatch.setattr(sampler_child, "SETTLING", 0.1)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """`start(words, **environment)`: a process that waits."""
    begun = []

    def begin(words: str = "", **environment: str) -> subprocess.Popen[bytes]:
        program = f"{words}\nimport sys\nprint('up', flush=True)\nsys.stdin.read()\n"
        argv = [sys.executable, "-S", "-c", program]
        child = subprocess.Popen(argv, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        begun.append(child)
        assert child.stdout is not None and child.stdout.readline() == b"up\n"
        return child

    yield begin
    for each in begun:
        each.kill()
        each.communicate()


def ending(made: Made) -> tuple[list[Any], list[Any], bool]:
    return end_left(cast(Sampling, made), lambda seconds: None)


@pytest.mark.parametrize(
    ("words", "patient", "by"),
    [("", "GRACE", "SIGTERM"), ("import signal; signal.signal(15, signal.SIG_IGN)", "SETTLING", "SIGKILL")],
    ids=["one that listens", "one that does not"],
)
def test_a_process_of_the_run_is_ended(start, monkeypatch, words, patient, by):
    monkeypatch.setattr(sampler_child, patient, 60.0)
    child = start(words, HOLDFAST_GENERATION=GENERATION)
    left, ended, answered = ending(Made(child.pid, is_there=lambda pid: child.poll() is None))
    assert (left, answered) == ([], True)
    assert [(each.pid, each.signal) for each in ended] == [(child.pid, by)]


@pytest.mark.parametrize("environment", [{}, {"HOLDFAST_RUN_ID": "run_1"}, {"HOLDFAST_GENERATION": "another"}])
def test_a_pid_that_was_reused_by_another_process_is_never_signalled(environment, start):
    """The driver names a process that is gone, and another has its pid."""
    stranger = start(**environment)
    left, ended, answered = ending(Made(stranger.pid))
    assert (ended, answered) == ([], True)
    assert stranger.poll() is None
    assert [tuple(each) for each in left] == [(stranger.pid, "", uuid(0), GIB)], "not by the stranger's name"


def test_who_takes_the_pid_after_the_question_is_not_signalled(start, monkeypatch):
    child = start(HOLDFAST_GENERATION=GENERATION)
    now = processes.look(child.pid)
    assert now is not None
    before = now._replace(start="1")  # as it was at the time of the question
    monkeypatch.setattr(sampler_child, "processes", _Earlier(before))
    _, ended, _ = ending(Made(child.pid))
    assert ended == [] and child.poll() is None


class _Earlier:
    """The processes, with one that was looked at before another took its pid."""

    send = staticmethod(processes.send)

    def __init__(self, before: processes.Process) -> None:
        self._before = before

    def look(self, pid: int) -> processes.Process:
        return self._before


def test_nothing_is_known_from_before(start):
    child = start(HOLDFAST_GENERATION=GENERATION)
    made = Made(child.pid)
    ending(made)
    assert made.asked > 1, "every round asks anew"
    wait_for(lambda: child.poll() is not None)


def test_the_process_that_ends_them_does_not_end_itself(monkeypatch):
    made = Made(os.getpid(), os.getppid(), 1)
    made.pid = 1
    monkeypatch.setattr(Belonging, "of", lambda self, pid: "own")
    monkeypatch.setattr(processes, "send", lambda process, number: pytest.fail("signalled"))
    assert len(ending(made)[0]) == 3


@pytest.mark.parametrize("plan", ["[]", "{", '{"run": "r"}'])
def test_a_plan_that_is_damaged_is_no_reason_not_to_start_the_script(plan, tmp_path):
    (tmp_path / "plan.json").write_text(plan)
    with pytest.raises(CannotStart):
        Sampling(str(tmp_path), os.getpid(), cast(Attendant, None))
