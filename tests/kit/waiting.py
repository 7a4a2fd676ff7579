"""Wait for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

NOT_YET = (OSError, StopIteration, ValueError)
"""A file that is not there yet, or not whole; a process that has just ended."""


def wait_for(condition: Callable[[], T | None], seconds: float = 60.0, what: str = "") -> T:
    """The first answer of `condition` that is true; AssertionError when there was none in time, which is only a bound
    for a test that fails."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        error: Exception | None = None
        try:
            answer = condition()
        except NOT_YET as raised:
            error = raised
        else:
            if answer:
                return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds} s still not so: {what or condition}") from error
        time.sleep(max(0.01, time.monotonic() - began))  # at most half of the time goes into looking
