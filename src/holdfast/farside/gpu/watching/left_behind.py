"""After the end: no process of the run may hold memory of a GPU. What does is ended, and named if it cannot be."""

import os
import signal
import time
from typing import Callable, Dict, List, Sequence, Tuple

from holdfast.farside.gpu.judging.facts import Left
from holdfast.farside.gpu.watching.belonging import OWN
from holdfast.farside.gpu.watching.samples import Row
from holdfast.farside.gpu.watching.sampling import Sampling
from holdfast.farside.run import processes
from holdfast.farside.run.processes import Ended, Process

GRACE = 1.0
SETTLING = 3.0
"""Seconds for the driver to take back what an ended process had."""
_BETWEEN = 0.1


def end_left(sampling: Sampling, wait: Callable[[float], None]) -> Tuple[List[Left], List[Ended], bool]:
    """What still holds memory, what was ended for it, and whether the driver answered at all. Returns at once where
    nothing of the run was on a device."""
    rows = sampling.look_now()
    if rows is None:
        return [], [], False
    uuids = {each.number: each.uuid for each in sampling.samples().devices}
    ended: Dict[int, Ended] = {}
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
                ended[process.pid] = Ended(process.pid, process.name, number.name)
        wait(_BETWEEN)
        again = sampling.look_now()
        if again is None:
            return left, list(ended.values()), False
        rows = again


def _living(rows: Sequence[Row], sampling: Sampling) -> Dict[int, Process]:
    """Those that are the run's now. A driver may name one that is long gone, whose pid has somebody else meanwhile, so
    nothing counts that was known before. Each is looked at first and asked about then: one that takes its pid in
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
