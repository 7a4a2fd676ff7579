"""Made-up reports of the driver, and leases that ask for them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.farside.gpu.lease import registry
from holdfast.farside.gpu.lease.leases import Lease, LeaseHolder, lease
from holdfast.farside.gpu.request import GpuRequest


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


def process(pid: int, **changes: Any) -> dict[str, Any]:
    """One that a device has."""
    return {"pid": pid, "memory": 1 << 30, "kind": "compute", "instance": None, **changes}


class Driver:
    """Returns the next report at each call, and repeats the last one; time passes during waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports: list[dict[str, Any]] = []
        self.told: list[str] = []
        self.asked = 0
        self.clock = 1000.0
        self.then: Callable[[], object] = lambda: None
        self.leases: list[Lease] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.clock)

    def ask(self) -> dict[str, Any]:
        self.asked += 1
        return self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]

    def waited_for(self) -> list[str]:
        """The messages, without their common beginning."""
        return [each.partition(": ")[2] for each in self.told]

    def wait(self, seconds: float) -> None:
        self.clock += seconds
        assert self.clock < 1000 + 3600, f"it waits without end: {self.told}"
        self.then()

    def lease(self, request: GpuRequest, *reports: dict[str, Any], run: str = "mine") -> Lease:
        """The first report is known in advance; the others are the driver's answers."""
        self.reports = list(reports[1:] or reports)
        who = LeaseHolder(os.getuid(), run, os.getpid())
        found = lease(request, reports[0], self.ask, self.told.append, self.wait, who)
        self.leases.append(found)
        return found


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made = Driver(monkeypatch)
    yield made
    for each in made.leases:
        registry.close(each.sockets)
