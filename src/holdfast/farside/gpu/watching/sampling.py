"""The sampler as the supervisor has it: a child that may hang in a sick driver, and is never waited for without end."""

import json
import os
import signal
import time
from typing import Optional, Set, Tuple

from holdfast.farside.gpu.watching.belonging import Belonging
from holdfast.farside.gpu.watching.following import Following
from holdfast.farside.gpu.watching.sampler import belonging, command
from holdfast.farside.gpu.watching.samples import Row, Samples
from holdfast.farside.layout import CONTROL, SAMPLES
from holdfast.farside.machine.programs import BRIEFLY
from holdfast.farside.run.children import Attendant, CannotStart, inherited_environment, spawn

PATIENCE = 2.0
"""Seconds for an answer of a driver that works."""
_BETWEEN = 0.02


class Sampling:
    """Begins when it is made. Raises CannotStart, and OSError for files of the run."""

    def __init__(self, folder: str, guardian: int, attendant: Attendant) -> None:
        self._folder, self._guardian, self._attendant = folder, guardian, attendant
        self._generation = _generation(folder)
        self._following = Following(os.path.join(folder, SAMPLES))
        log = os.open(os.path.join(folder, CONTROL), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            argv = command(folder, guardian, self._generation)
            self.pid = spawn(argv, inherited_environment(), "/", log)
        finally:
            os.close(log)
        attendant.expect(self.pid)

    @property
    def is_alive(self) -> bool:
        return self.pid not in self._attendant.exits

    def samples(self) -> Samples:
        """All until now."""
        self._following.read_on()
        return self._following.samples()

    def belonging(self) -> Belonging:
        """Whose a process is, asked anew: nothing is known from before."""
        return belonging(self._folder, self._guardian, self._generation)

    @property
    def is_stalled(self) -> bool:
        """Of one that did not answer: whether it hangs. Else it has said why not."""
        return self.is_alive and not self.samples().problem

    def look_now(self, patience: float = PATIENCE) -> Optional[Tuple[Row, ...]]:
        """What is on the devices now; None where there is no answer. There is none to wait for from devices that are
        lost."""
        self.samples()  # of a long run that takes a while, which is not the driver's
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
        """Leave no process behind, but one that the kernel does not let go. A repeat changes nothing."""
        deadline = time.monotonic() + BRIEFLY
        while self.is_alive:
            _send(self.pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return
            self._attendant.wait(_BETWEEN, None)


def _generation(folder: str) -> str:
    """What no other run has, and no shell that a person opened in the surroundings of this one."""
    try:
        with open(os.path.join(folder, "plan.json")) as source:
            return str(json.load(source)["generation"])
    except (ValueError, LookupError, TypeError):
        raise CannotStart("the plan of the run is damaged")


def _lost(samples: Samples) -> Set[int]:
    return {each.number for each in samples.losses if each.until is None}


def _send(pid: int, number: int) -> None:
    """It is our child, and not reaped, so the pid is its own."""
    try:
        os.kill(pid, number)
    except OSError:
        pass
