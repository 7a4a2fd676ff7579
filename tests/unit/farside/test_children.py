"""Waiting for a process while signals come."""

from __future__ import annotations

import os
import signal

from holdfast.farside.run.children import Attendant


class LateChild:
    """Signals of a child that ends just when they are being taken: the next look must still find its exit."""

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
