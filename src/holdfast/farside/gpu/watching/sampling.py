"""The sampler as the supervisor has it: a child that may hang in a sick driver, and is never waited for without end."""

import os
import signal
import time
from typing import Callable, Optional, Set, Tuple

from holdfast.farside.gpu.watching.sampler import command
from holdfast.farside.gpu.watching.samples import Fold, Row, Samples
from holdfast.farside.layout import CONTROL, SAMPLES
from holdfast.farside.machine.programs import BRIEFLY
from holdfast.farside.run.children import Attendant, inherited_environment, spawn

PATIENCE = 2.0
"""Seconds for an answer of a driver that works."""
_BETWEEN = 0.02

Wait = Callable[[float], None]


class Sampling:
    """Begins when it is made. Raises CannotStart."""

    def __init__(self, folder: str, guardian: int, run: str, attendant: Attendant) -> None:
        self._path = os.path.join(folder, SAMPLES)
        self._attendant = attendant
        self._fold, self._read = Fold(), 0
        self.abandoned: Set[int] = set()
        log = os.open(os.path.join(folder, CONTROL), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            self.pid = spawn(command(folder, guardian, run), inherited_environment(), "/", log)
        finally:
            os.close(log)
        attendant.expect(self.pid)

    @property
    def is_alive(self) -> bool:
        return self.pid not in self._attendant.exits

    def samples(self) -> Samples:
        """All until now."""
        try:
            with open(self._path, "rb") as source:
                source.seek(self._read)
                data = source.read()
        except OSError:
            data = b""
        self._read += len(data)
        self._fold.feed(data)
        return self._fold.samples()

    @property
    def is_stalled(self) -> bool:
        """Of one that did not answer: whether it hangs. Else it has said why not."""
        return self.is_alive and not self.samples().problem

    def look_now(self, patience: float = PATIENCE) -> Optional[Tuple[Row, ...]]:
        """What is on the devices now; None where there is no answer. There is none to wait for from devices that are
        lost."""
        began = time.time()
        deadline = time.monotonic() + patience
        asked = False
        while True:
            samples = self.samples()
            if samples.ticks and samples.ticks[-1].time > began:
                return samples.ticks[-1].rows
            if samples.devices and {each.number for each in samples.devices} <= _lost(samples):
                return ()
            if samples.problem or not self.is_alive or time.monotonic() > deadline:
                return None
            if samples.began is not None and not asked:
                asked = True
                _send(self.pid, signal.SIGUSR1)
            self._attendant.wait(_BETWEEN, None)

    def end(self) -> None:
        """Leave no process behind; one that the kernel does not let go is `abandoned`. A repeat changes nothing."""
        deadline = time.monotonic() + BRIEFLY
        while self.is_alive:
            _send(self.pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                self.abandoned.add(self.pid)
                return
            self._attendant.wait(_BETWEEN, None)
        self.abandoned.discard(self.pid)


def _lost(samples: Samples) -> Set[int]:
    return {each.number for each in samples.losses if each.until is None}


def _send(pid: int, number: int) -> None:
    """It is our child, and not reaped, so the pid is its own."""
    try:
        os.kill(pid, number)
    except OSError:
        pass
