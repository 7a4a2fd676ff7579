"""Runs that were started inside a run: they have guardians of their own, and do not end with the run that started
them."""

import os
from typing import Set

from holdfast.farside import kernel
from holdfast.farside.layout import GUARDIAN_BYTE, Home


def other_guardians(home: Home, folder: str) -> Set[int]:
    """The pids of all guardians of this host but that of the run in `folder`. The lock proves what the name claims."""
    found = set()
    for project in _names(home.runs()):
        for run in _names(os.path.join(home.runs(), project)):
            other = os.path.join(home.runs(), project, run)
            holder = None if other == folder else kernel.lock_holder(os.path.join(other, "lock"), GUARDIAN_BYTE)
            if holder:
                found.add(holder)
    return found


def _names(folder: str) -> Set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
