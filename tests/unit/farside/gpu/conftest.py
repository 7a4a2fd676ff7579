"""Made-up reports of the driver."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def report_of() -> Callable[..., dict[str, Any]]:
    """`report_of({}, {"memory_total": 5})`: a machine with these devices, with unique UUIDs."""
    mark = os.urandom(6).hex()

    def make(*devices: dict[str, Any], state: str = "ok", problem: str = "") -> dict[str, Any]:
        rows = [_device(number, mark, changes) for number, changes in enumerate(devices)]
        return {"state": state, "problem": problem, "code": None, "driver": "535", "cuda": "12.2", "devices": rows}

    return make


def _device(number: int, mark: str, changes: dict[str, Any]) -> dict[str, Any]:
    known = {"index": number, "state": "ok", "problem": "", "name": "K80", "uuid": f"GPU-{number}-{mark}"}
    memory = {"memory_total": 12 << 30, "memory_used": 0, "memory_free": 12 << 30}
    return {**known, **memory, "mig": False, "instances": [], "processes": [], **changes}
