"""Wait for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

NOT_YET = (OSError, StopIteration, ValueError)
"""A file that does not exist yet or is incomplete; a process that has just ended."""


def wait_for(condition: Callable[[], T | None], seconds: float = 60.0, what: str = "") -> T:
    """The first true answer of `condition`. Raises AssertionError if there is none in time, which only limits a failing
    test."""
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
        time.sleep(max(0.01, time.monotonic() - began))  # spend at most half of the time looking
