"""What a run waits for, what it is told, and what it is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.farside.gpu.leasing import leases, registry
from holdfast.farside.gpu.leasing.leases import Holder, Lease, lease
from holdfast.farside.gpu.request import Request
from holdfast.farside.refusal import Refused

GIB = 1 << 30


class Driver:
    """Says the next report each time it is asked, the last one for ever; time passes where somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports: list[dict[str, Any]] = []
        self.told: list[str] = []
        self.asked = 0
        self.clock = 1000.0
        self.then: Callable[[], None] = lambda: None
        self.leases: list[Lease] = []
        monkeypatch.setattr(leases.time, "monotonic", lambda: self.clock)

    def ask(self) -> dict[str, Any]:
        self.asked += 1
        return self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]

    def wait(self, seconds: float) -> None:
        self.clock += seconds
        self.then()

    def lease(self, request: Request, *reports: dict[str, Any], run: str = "mine") -> Lease:
        """The first report is known before; the others are the driver's answers."""
        self.reports = list(reports[1:] or reports)
        who = Holder(os.getuid(), run, os.getpid())
        found = lease(request, reports[0], self.ask, self.told.append, self.wait, who)
        self.leases.append(found)
        return found


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made = Driver(monkeypatch)
    yield made
    for each in made.leases:
        registry.close(each.sockets)


def process(pid: int, **changes: Any) -> dict[str, Any]:
    return {"pid": pid, "memory": GIB, "kind": "compute", "instance": None, **changes}


def test_what_is_free_is_had_at_once_and_nothing_is_said(driver, report_of) -> None:
    report = report_of({}, {}, {})
    found = driver.lease(Request(gpus=2), report)
    assert found.uuids == tuple(each["uuid"] for each in report["devices"][:2])
    assert [(each.label, each.cdi) for each in found.units] == [("GPU 0", "0"), ("GPU 1", "1")]
    assert (driver.told, driver.asked) == ([], 1)
    assert not any(each.usable & set(found.uuids) for each in registry.read().tickets)


def test_all_are_all_that_are_large_enough(driver, report_of) -> None:
    report = report_of({"memory_total": 4 * GIB}, {"memory_total": 40 * GIB, "memory_free": 40 * GIB}, {})
    assert [each.number for each in driver.lease(Request(gpus="all", min_memory=8 * GIB), report).units] == [1, 2]


def test_a_device_that_another_has_is_waited_for_by_name(driver, report_of) -> None:
    report = report_of({}, {}, {})
    held = driver.lease(Request(gpus="all"), report, run="theirs")
    driver.then = lambda: registry.close(held.sockets)
    assert driver.lease(Request(gpus=1), report).units[0].number == 0
    import getpass

    by = f"is held by the run theirs of {getpass.getuser()}"
    assert driver.told == [f"waiting for a GPU: GPU 0 {by}; GPU 1 {by}; 1 more"]


def test_a_strangers_process_is_in_the_way_until_it_is_gone_and_is_named_once(driver, report_of) -> None:
    busy, free = report_of({"processes": [process(os.getpid())]}), report_of({})
    found = driver.lease(Request(gpus=1), free, busy, busy, free)
    assert found.units[0].number == 0
    (told,) = driver.told
    assert told.startswith(f"waiting for a GPU: GPU 0 is used by process {os.getpid()} (")
    assert driver.asked == 3
    assert driver.clock >= 1000 + 2 * leases.ASK_EVERY


def test_a_process_that_nobody_here_can_see_is_in_the_way_too(driver, report_of) -> None:
    busy = report_of({"processes": [process(2**22 + 5)]})
    driver.lease(Request(gpus=1), busy, busy, report_of({}))
    assert driver.told == [f"waiting for a GPU: GPU 0 is used by process {2**22 + 5} (which cannot be seen from here)"]


def test_the_device_without_a_stranger_is_handed_out(driver, report_of) -> None:
    report = report_of({"processes": [process(os.getpid())]}, {"processes": [process(1, kind="graphics")]})
    assert [each.number for each in driver.lease(Request(gpus=1), report).units] == [1]
    assert driver.told == []


def test_a_device_is_handed_out_only_when_enough_of_its_memory_is_free(driver, report_of) -> None:
    little, enough = report_of({"memory_free": 3 * GIB}), report_of({"memory_free": 9 * GIB})
    driver.lease(Request(gpus=1, min_memory=8 * GIB), little, little, enough)
    assert driver.told == ["waiting for a GPU: GPU 0 has 3.0 GiB free"]


def test_a_driver_that_does_not_answer_is_waited_for(driver, report_of) -> None:
    sick = report_of(state="timed-out", problem="GPU 0 does not answer within 3 s")
    driver.lease(Request(gpus=1), report_of({}), sick, report_of({}))
    assert driver.told == ["waiting for a GPU: GPU 0 does not answer within 3 s"]


def test_whoever_stops_waiting_gives_up_the_place(driver, report_of) -> None:
    report = report_of({"processes": [process(os.getpid())]})

    def stop() -> None:
        raise KeyboardInterrupt

    driver.then = stop
    with pytest.raises(KeyboardInterrupt):
        driver.lease(Request(gpus=1), report)
    uuid = report["devices"][0]["uuid"]
    assert not any(uuid in each.usable for each in registry.read().tickets)


def test_somebody_who_is_quicker_makes_one_try_again(driver, report_of, monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of({}, {})
    take, lost = registry.take, []

    def take_late(uuids: tuple[str, ...], who: Holder) -> Any:
        if not lost:
            lost.append(take(uuids, Holder(0, "quicker", 1)))
        return take(uuids, who)

    monkeypatch.setattr(registry, "take", take_late)
    assert driver.lease(Request(gpus=1), report).units[0].number == 1
    registry.close(lost[0])


def test_instances_of_a_device_are_leased_one_by_one(driver, report_of) -> None:
    parts = [
        {"index": number, "name": "1g.5gb", "uuid": f"MIG-{number}-{os.urandom(6).hex()}", "gpu_instance": number + 7}
        | {"memory_total": 5 * GIB, "memory_free": 5 * GIB}
        for number in range(3)
    ]
    on_first = [process(os.getpid(), instance=7)]
    report = report_of({"mig": True, "instances": parts, "processes": on_first})
    (unit,) = driver.lease(Request(gpus=1), report).units
    assert (unit.uuid, unit.label, unit.cdi, unit.total) == (parts[1]["uuid"], "GPU 0 instance 1", "0:1", 5 * GIB)
    with pytest.raises(Refused, match="This machine has 3 GPUs, and the run asks for 4"):
        driver.lease(Request(gpus=4), report)


@pytest.mark.parametrize(
    ("request_", "devices", "state", "said", "hint"),
    [
        (
            Request(gpus=4, by="`--gpus 4`"),
            2,
            "ok",
            "has 2 GPUs, and `--gpus 4` asks for 4.",
            "`--gpus 2`",
        ),
        (
            Request(gpus="all"),
            0,
            "ok",
            "has no GPU that works, and the run asks for a GPU.",
            "where",
        ),
        (
            Request(gpus=1),
            0,
            "no-driver",
            "has no NVIDIA driver, and the run asks for a GPU.",
            "where",
        ),
        (
            Request(gpus=1),
            0,
            "failed",
            "cannot be used (Driver Not Loaded), and the run asks for a GPU.",
            "where",
        ),
        (
            Request(gpus=1, min_memory=40 * GIB),
            2,
            "ok",
            "No GPU of this machine has 40.0 GiB of memory",
            "has 12.0 GiB",
        ),
    ],
)
def test_more_than_a_machine_can_ever_give_is_refused(
    driver, report_of, request_: Request, devices: int, state: str, said: str, hint: str
) -> None:
    report = report_of(*[{}] * devices, state=state, problem="Driver Not Loaded." if state == "failed" else "")
    with pytest.raises(Refused) as refused:
        driver.lease(request_, report)
    assert refused.value.kind == "gpu"
    assert said in refused.value.message
    assert hint in refused.value.hint


def test_a_machine_that_lost_a_device_meanwhile_refuses_too(driver, report_of) -> None:
    lost = report_of({}, {"state": "lost"})
    with pytest.raises(Refused, match="This machine has 1 GPU, and the run asks for 2"):
        driver.lease(Request(gpus=2), report_of({}, {}), lost)
