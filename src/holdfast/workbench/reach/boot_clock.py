"""How long this machine has been on. Nobody sets that clock, so it tells how much time passed between two commands."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple


class SinceBoot(NamedTuple):
    """Seconds since the start that `boot` names; they count on while the machine sleeps."""

    boot: str
    seconds: float


def read_boot_clock() -> SinceBoot | None:
    """None where the system does not name its starts: then only its clock can be asked."""
    if sys.platform != "linux":
        return None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return SinceBoot(boot, time.clock_gettime(time.CLOCK_BOOTTIME))
    except (OSError, ValueError):
        return None
