"""Waiting for a process while signals come."""

from __future__ import annotations

import os
import signal
import time

import pytest

from holdfast.farside.system.children import Attendant, Stop, inherited_environment


class LateChild:
    """Signals of a child that ends while they are read: the next look must still find its exit."""

    def __init__(self) -> None:
        self.descriptor, self._writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        self.child = os.fork()
        if self.child == 0:
            signal.pause()
        os.write(self._writer, b"\0")  # something wakes the attendant

    def arrived(self) -> list[int]:
        taken = list(os.read(self.descriptor, 100))
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOWAIT)  # it is a zombie now, not reaped
            self.child = 0
        return taken

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self._writer)


def test_a_child_that_ends_while_signals_are_taken_is_not_missed():
    signals = LateChild()
    pid = signals.child
    attendant = Attendant(signals, 1.0, lambda: None)  # type: ignore[arg-type]
    attendant.wait(5.0, None)
    signals.close()
    assert attendant.exits[pid].signal == signal.SIGKILL


class Woken:
    """Signals of a supervisor that was asked to look for a request."""

    def __init__(self) -> None:
        self.descriptor, self._writer = os.pipe()
        os.write(self._writer, b"\0")

    def arrived(self) -> list[int]:
        os.close(self.descriptor)
        os.close(self._writer)
        return [signal.SIGUSR1]


@pytest.mark.parametrize("cause", ["cancel", "time-limit"])
def test_a_second_request_shortens_the_time_and_leaves_the_first_reason(cause: str) -> None:
    def asked() -> Stop:
        attendant.grace = 1.0
        return Stop("cancel", "again")

    attendant = Attendant(Woken(), 600.0, asked)  # type: ignore[arg-type]
    attendant.stop, attendant.kill_at = Stop(cause, "first"), time.monotonic() + 600.0
    attendant.wait(5.0, None)
    assert attendant.stop == Stop(cause, "first")
    assert attendant.grace_left() <= 1.0


def test_a_process_of_the_run_does_not_inherit_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_PASSWORD", "geheim")
    monkeypatch.setenv("OTHER", "stays")
    found = inherited_environment()
    assert "geheim" not in found.values()
    assert found["OTHER"] == "stays"
