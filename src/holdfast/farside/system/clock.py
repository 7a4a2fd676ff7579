"""A run's clock: the wall clock at its start plus the kernel's boot time since. Setting the machine's clock does not
change it."""

import time
from typing import Any, Dict, Optional

from holdfast.farside.system import kernel

_BOOTTIME = 7
"""CLOCK_BOOTTIME, which Python has a name for since 3.7."""


class Clock:
    """`offset` is that of another process of the same run; None: begins now."""

    def __init__(self, offset: Optional[float] = None) -> None:
        self.offset = round(time.time() - seconds_since_boot(), 4) if offset is None else offset

    def now(self) -> float:
        """Seconds since 1970."""
        return self.offset + seconds_since_boot()


class _WallClock(Clock):
    """Of runs that do not say when theirs began, or began before the machine was restarted."""

    def now(self) -> float:
        return time.time()


def clock_of(created: Dict[str, Any]) -> Clock:
    """By the run's first event."""
    offset = created.get("clock")
    if not isinstance(offset, (int, float)) or not abs(offset) < _MOST or created.get("boot") != kernel.boot_id():
        return WALL
    return Clock(float(offset))


WALL: Clock = _WallClock(0.0)
_MOST = 1e11
"""Seconds. An offset beyond, thousands of years, was not written by Holdfast."""


def seconds_since_boot() -> float:
    """The same for all processes of the machine; it counts on while the machine sleeps."""
    return time.clock_gettime(_BOOTTIME)
