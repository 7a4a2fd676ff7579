"""After the end: no process of the run may hold memory of a GPU. What does is ended, and named if it cannot be."""

import signal
import time
from typing import Callable, Dict, List, Sequence, Tuple

from holdfast.farside.gpu.judging.facts import Left
from holdfast.farside.gpu.watching.samples import Row
from holdfast.farside.gpu.watching.sampling import Sampling
from holdfast.farside.run import processes

GRACE = 1.0
SETTLING = 3.0
"""Seconds for the driver to take back what an ended process had."""
_BETWEEN = 0.1


def end_left(sampling: Sampling, wait: Callable[[float], None]) -> Tuple[List[Left], List[processes.Ended], bool]:
    """What still holds memory, what was ended for it, and whether the driver answered at all. Returns at once where
    nothing of the run was on a device."""
    rows = sampling.look_now()
    if rows is None:
        return [], [], False
    uuids = {each.number: each.uuid for each in sampling.samples().devices}
    ended: Dict[int, processes.Ended] = {}
    began = time.monotonic()
    while True:
        left = _left(rows, uuids)
        if not left or time.monotonic() - began > GRACE + SETTLING:
            return left, list(ended.values()), True
        number = signal.SIGTERM if time.monotonic() - began < GRACE else signal.SIGKILL
        for each in left:
            process = processes.look(each.pid)
            if process is not None and process.state not in "ZX" and processes.send(process, number):
                ended[each.pid] = processes.Ended(each.pid, process.name, number.name)
        wait(_BETWEEN)
        again = sampling.look_now()
        if again is None:
            return left, list(ended.values()), False
        rows = again


def _left(rows: Sequence[Row], uuids: Dict[int, str]) -> List[Left]:
    found = []
    for row in rows:
        for pid in row.own:
            process = processes.look(pid)
            memory = row.own_memory if len(row.own) == 1 else None
            found.append(Left(pid, "" if process is None else process.name, uuids.get(row.number, ""), memory))
    return found
