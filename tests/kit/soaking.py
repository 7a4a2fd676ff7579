"""Tests that go on for as long as they are given: `make soak` gives them minutes, and reads their figures."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from kit.suite.moments import is_soak


def seeds(request: pytest.FixtureRequest, seconds: float) -> Iterator[int]:
    """One after the other until so many seconds are over; elsewhere than in `make soak` one."""
    until = time.monotonic() + (seconds if is_soak(request.config) else 0.0)
    for seed in itertools.count(1000):
        yield seed
        if time.monotonic() >= until:
            return
