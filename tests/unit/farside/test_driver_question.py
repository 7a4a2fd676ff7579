"""The reader of the GPUs, as a child of the supervisor: its output, its end, and that nothing waits for one that cannot
be ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.machine import gpus
from holdfast.farside.machine.gpus import DriverQuestion
from holdfast.farside.system import processes, programs
from holdfast.farside.system.children import Attendant, Signals
from holdfast.farside.system.programs import Program, collect

REPORT = '{"state": "ok", "problem": "", "devices": []}'


@pytest.fixture
def attendant() -> Iterator[Attendant]:
    numbers = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
    before = {number: signal.getsignal(number) for number in numbers}
    wakeup = signal.set_wakeup_fd(-1)
    try:
        yield Attendant(Signals(()), 1.0, lambda: None)
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)


def question(attendant: Attendant, monkeypatch: pytest.MonkeyPatch, code: str, notes: list[str]) -> DriverQuestion:
    monkeypatch.setattr(gpus, "is_present", lambda environment: True)
    argv = [sys.executable, "-I", "-S", "-c", code]
    monkeypatch.setattr(gpus, "start", lambda environment: Program(argv, environment))
    return DriverQuestion(attendant, notes.append)


def test_a_reader_that_answers_is_reaped_and_leaves_no_note(attendant, monkeypatch):
    notes: list[str] = []
    made = question(attendant, monkeypatch, f"print('{REPORT}')", notes)
    made.hear(lambda seconds: attendant.wait(seconds, None))
    assert made.report["devices"] == []
    assert (notes, made.abandoned) == ([], set())
    assert len(attendant.exits) == 1


def test_a_reader_that_cannot_be_ended_is_left_behind_after_a_moment(attendant, monkeypatch):
    made = question(attendant, monkeypatch, "import time; time.sleep(600)", [])
    killed: list[Any] = []

    def kill_in_vain(program: Program) -> None:
        killed.append(program)

    monkeypatch.setattr(Program, "kill", kill_in_vain)
    began = time.monotonic()
    made.end()
    (reader,) = killed
    assert time.monotonic() - began < 60
    assert made.abandoned == {reader.pid}
    monkeypatch.undo()
    reader.kill()
    os.waitpid(reader.pid, 0)


def test_to_stop_waiting_ends_the_reader(attendant, monkeypatch):
    monkeypatch.setattr(gpus, "BRIEFLY", 60.0)
    made = question(attendant, monkeypatch, "import time; time.sleep(600)", [])

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.hear(stop)
    made.end()
    made.end()
    assert [each.signal for each in attendant.exits.values()] == [signal.SIGKILL]
    assert made.abandoned == set()


def test_only_a_process_of_the_readers_name_can_be_spared():
    code = "import sys; sys.path.insert(0, sys.argv[1]); from holdfast.farside.system import kernel\n"
    code += "kernel.set_name(sys.argv[2]); print('named', flush=True); input()"
    source = str(Path(gpus.__file__).parents[2])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, source, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("hf-gpus", "other")
    ]
    try:
        for each in started:
            assert each.stdout is not None
            assert each.stdout.readline() == "named\n"
        pids = {each.pid for each in started}
        everyone = {each.pid for each in processes.descendants(os.getpid(), set)}
        others = {each.pid for each in processes.descendants(os.getpid(), lambda: pids)}
        assert pids <= everyone
        assert everyone - others == {started[0].pid}
    finally:
        for each in started:
            each.communicate("\n")


def test_several_programs_are_asked_at_once_and_the_late_one_is_killed(monkeypatch):
    monkeypatch.setattr(programs, "BRIEFLY", 60.0)
    for patience in (0.1, 1.0, 50.0):  # as long as a busy machine needs for the quick one
        quick = Program(["/bin/sh", "-c", "echo quick; echo more >&2"], {"PATH": "/bin:/usr/bin"})
        late = Program(["/bin/sh", "-c", "echo begun; sleep 600"], {"PATH": "/bin:/usr/bin"})
        collect([quick, late], patience)
        if quick.is_done and late.text():
            break
    assert (quick.is_done, quick.text()) == (True, "quick\nmore\n")
    assert (late.is_done, late.text()) == (False, "begun\n")
    assert not Path(f"/proc/{late.pid}").exists()
