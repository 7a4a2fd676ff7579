"""Times of day for people."""

from __future__ import annotations

import time


def clock_time(seconds: float, now: float | None = None) -> str:
    """`14:02` today, `2026-11-03 14:02` on another day."""
    then, today = time.localtime(seconds), time.localtime(time.time() if now is None else now)
    is_today = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)
