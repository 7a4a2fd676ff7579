"""Metrics, times and sizes as people read them. Durations and sizes that can be typed too are in `project/`."""

from __future__ import annotations

import math
import time
from typing import Any

from holdfast.project.quantities import format_size

GIB = 1 << 30


def metric_text(value: Any, digits: int = 5) -> str:
    """Of a list only how long it is."""
    if isinstance(value, float):
        return f"{value:.{digits}g}" if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return f"[{len(value)} values]"
    return "" if value is None else str(value)


def clock_time(seconds: float, now: float) -> str:
    """`14:02` today, `2026-11-03 14:02` on another day."""
    then, today = time.localtime(seconds), time.localtime(now)
    is_today = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)


def local_time(seconds: float | None) -> str:
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def offset_text(seconds: float) -> str:
    """Of another clock."""
    return f"{abs(seconds):.1f} s {'ahead of' if seconds >= 0 else 'behind'}"


def size_text(count: int | None) -> str:
    return "unknown" if count is None else format_size(count)


def gibibytes(count: int | None) -> str:
    """As sizes of GPUs are usually given."""
    return "unknown" if count is None else f"{count / GIB:.2f} GiB"
