"""The sampler as the supervisor has it: a child that may hang in a sick driver, and is never waited for without end;
and the end of processes that it sees holding memory of a GPU when the script is gone."""

import os
import signal
import time
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.gpu.gpu_facts import Left
from holdfast.farside.gpu.samples import Following, Row, Samples
from holdfast.farside.gpu.watch.process_owner import OWN, Belonging
from holdfast.farside.gpu.watch.sampler import belonging, command
from holdfast.farside.system import processes
from holdfast.farside.system.children import Attendant, CannotStart, inherited_environment, spawn
from holdfast.farside.system.files import read_record
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import CONTROL, JOURNAL, SAMPLES
from holdfast.farside.system.nofollow import open_plain
from holdfast.farside.system.processes import EndedProcess, Process
from holdfast.farside.system.programs import BRIEFLY

PATIENCE = 2.0
"""Seconds for an answer of a driver that works."""
_BETWEEN = 0.02


class Sampling:
    """Begins when it is made. Raises CannotStart, and OSError for files of the run."""

    def __init__(self, folder: str, guardian: int, attendant: Attendant) -> None:
        self._folder, self._guardian, self._attendant = folder, guardian, attendant
        self._generation = _generation(folder)
        self._clock = JournalWriter(os.path.join(folder, JOURNAL)).clock()
        self._following = Following(os.path.join(folder, SAMPLES))
        log = open_plain(os.path.join(folder, CONTROL), os.O_WRONLY | os.O_APPEND)
        try:
            argv = command(folder, guardian, self._generation)
            self.pid = spawn(argv, inherited_environment(), "/", log)
        finally:
            os.close(log)
        attendant.expect(self.pid)
        attendant.tell_helper(self.pid)

    @property
    def is_alive(self) -> bool:
        return self.pid not in self._attendant.exits

    def samples(self) -> Samples:
        """All samples so far."""
        self._following.read_on()
        return self._following.samples()

    def belonging(self) -> Belonging:
        """Whose a process is, asked anew: nothing is known from before."""
        return belonging(self._folder, self._guardian, self._generation)

    @property
    def is_stalled(self) -> bool:
        """Whether a sampler that did not answer hangs, instead of having ended or told its problem."""
        return self.is_alive and not self.samples().problem

    def look_now(self, patience: float = PATIENCE) -> Optional[Tuple[Row, ...]]:
        """A fresh row for each device; None if no answer comes in time, empty if all devices are lost."""
        self.samples()  # of a long run that takes a while, which is not the driver's
        began = self._clock.now()
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
    """A text that only this run's processes carry: a shell that a person opened in its environment does not."""
    plan = read_record(os.path.join(folder, "plan.json"))
    if plan is None or "generation" not in plan:
        raise CannotStart("the plan of the run is damaged")
    return str(plan["generation"])


def _lost(samples: Samples) -> Set[int]:
    return {each.number for each in samples.losses if each.until is None}


def _send(pid: int, number: int) -> None:
    """It is our child, and not reaped, so the pid is its own."""
    try:
        os.kill(pid, number)
    except OSError:
        pass


GRACE = 1.0
SETTLING = 3.0
"""Seconds for the driver to take back what an ended process had."""
_BETWEEN = 0.1


def end_left(sampling: Sampling, wait: Callable[[float], None]) -> Tuple[List[Left], List[EndedProcess], bool]:
    """End processes of the run that still hold memory of a device. Returns those that still do, those it ended, and
    whether the driver answered. Returns at once if there are none."""
    rows = sampling.look_now()
    if rows is None:
        return [], [], False
    uuids = {each.number: each.uuid for each in sampling.samples().devices}
    ended: Dict[int, EndedProcess] = {}
    began = time.monotonic()
    while True:
        living = _living(rows, sampling)
        left = _left(rows, uuids, living)
        if not left or time.monotonic() - began > GRACE + SETTLING:
            return left, list(ended.values()), True
        number = signal.SIGTERM if time.monotonic() - began < GRACE else signal.SIGKILL
        for process in living.values():
            is_told = number == signal.SIGTERM and process.pid in ended
            if not is_told and processes.send(process, number):
                ended[process.pid] = EndedProcess(process.pid, process.name, number.name)
        wait(_BETWEEN)
        again = sampling.look_now()
        if again is None:
            return left, list(ended.values()), False
        rows = again


def _living(rows: Sequence[Row], sampling: Sampling) -> Dict[int, Process]:
    """Those that are the run's now. A driver may name one that is long gone, whose pid another process has meanwhile,
    so nothing counts that was known before. Each is looked at first and asked about then: one that takes its pid in
    between has another start time, and is not signalled."""
    ours = (os.getpid(), os.getppid(), sampling.pid)
    found = [processes.look(pid) for row in rows for pid in row.own if pid not in ours]
    known = {each.pid: each for each in found if each is not None and each.state not in "ZX"}
    belonging = sampling.belonging()
    return {pid: each for pid, each in known.items() if belonging.of(pid) == OWN}


def _left(rows: Sequence[Row], uuids: Dict[int, str], living: Dict[int, Process]) -> List[Left]:
    found = []
    for row in rows:
        for pid in row.own:
            name = living[pid].name if pid in living else ""
            memory = row.own_memory if len(row.own) == 1 else None
            found.append(Left(pid, name, uuids.get(row.number, ""), memory))
    return found
