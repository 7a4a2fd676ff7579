"""What a run waits for, what it is told, and what it is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.farside.gpu.leasing import leases, registry
from holdfast.farside.gpu.leasing.leases import Holder, Lease, lease
from holdfast.farside.gpu.request import Request
from holdfast.farside.refusal import Refused
from kit.waiting import wait_for

GIB = 1 << 30


class Driver:
    """Says the next report each time it is asked, the last one for ever; time passes where somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports: list[dict[str, Any]] = []
        self.told: list[str] = []
        self.asked = 0
        self.clock = 1000.0
        self.then: Callable[[], object] = lambda: None
        self.leases: list[Lease] = []
        monkeypatch.setattr(leases.time, "monotonic", lambda: self.clock)

    def ask(self) -> dict[str, Any]:
        self.asked += 1
        return self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]

    def wait(self, seconds: float) -> None:
        self.clock += seconds
        assert self.clock < 1000 + 3600, f"it waits without end: {self.told}"
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


def test_what_the_driver_said_of_a_device_while_another_run_had_it_does_not_count(driver, report_of) -> None:
    stranger = {"processes": [process(os.getpid())]}
    held = driver.lease(Request(gpus=1), report_of({}, {}), run="theirs")
    driver.then = lambda: registry.close(held.sockets)
    answers = [report_of({}, stranger), report_of(stranger, stranger), report_of(stranger, {})]
    assert [each.number for each in driver.lease(Request(gpus=1), report_of({}, {}), *answers).units] == [1]


def test_a_device_is_handed_out_only_when_enough_of_its_memory_is_free(driver, report_of) -> None:
    little, enough = report_of({"memory_free": 3 * GIB}), report_of({"memory_free": 9 * GIB})
    driver.lease(Request(gpus=1, min_memory=8 * GIB), little, little, enough)
    assert driver.told == ["waiting for a GPU: GPU 0 has 3.0 GiB free"]


def test_what_draws_and_computes_for_that_is_a_screens_and_in_nobodys_way(driver, report_of) -> None:
    both = [process(os.getpid()), process(os.getpid(), kind="graphics")]
    driver.lease(Request(gpus=1), report_of({"processes": both}))
    assert driver.told == []


def test_who_shares_a_screens_device_to_compute_is_in_the_way(driver, report_of) -> None:
    rows = [process(os.getpid()), process(1, kind="graphics"), process(1)]
    driver.lease(Request(gpus=1), report_of({}), report_of({"processes": rows}), report_of({}))
    (told,) = driver.told
    assert told.startswith(f"waiting for a GPU: GPU 0 is used by process {os.getpid()} (")


SILENT = {"state": "timed-out", "problem": "the driver does not answer within 60 s"}


def test_a_driver_that_does_not_answer_any_more_is_waited_for(driver, report_of) -> None:
    driver.lease(Request(gpus=1), report_of({}), report_of(**SILENT), report_of(**SILENT), report_of({}))
    assert driver.told == ["waiting for a GPU: the driver does not answer"]
    assert driver.asked == 3
    assert driver.clock >= 1000 + 2 * leases.ASK_EVERY


@pytest.mark.parametrize(
    ("gpus", "waits_for"), [(1, "waiting for a GPU"), (2, "waiting for 2 GPUs"), ("all", "waiting for the GPUs")]
)
def test_a_driver_that_has_not_answered_yet_is_waited_for(driver, report_of, gpus: Any, waits_for: str) -> None:
    silent, free = report_of(**SILENT), report_of({}, {})
    found = driver.lease(Request(gpus=gpus), silent, silent, silent, free)
    assert len(found.units) == (2 if gpus == "all" else gpus)
    assert driver.told == [f"{waits_for}: the driver does not answer"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_driver_that_never_answers_is_given_up_after_ten_minutes(driver, report_of, is_known: bool) -> None:
    silent = report_of(**SILENT)
    with pytest.raises(Refused) as refused:
        driver.lease(Request(gpus=1, by="`--gpus 1`"), report_of({}) if is_known else silent, silent)
    assert refused.value.kind == "gpu"
    said = "The driver of this machine's GPUs has not answered for 10 min, and `--gpus 1` asks for a GPU."
    assert refused.value.message == said
    assert refused.value.hint.startswith("Restart the machine")
    assert 600 <= driver.clock - 1000 < 610


def test_a_driver_that_answers_now_and_then_is_not_given_up(driver, report_of) -> None:
    busy = report_of({"processes": [process(os.getpid())]})
    now_and_then = ([report_of(**SILENT)] * 200 + [busy]) * 2
    driver.lease(Request(gpus=1), report_of(**SILENT), *now_and_then, report_of({}))
    assert driver.clock - 1000 > 600


@pytest.mark.parametrize("before", [0, 1])
def test_a_driver_that_fails_is_refused_in_its_own_words(driver, report_of, before: int) -> None:
    failed = report_of(state="failed", problem="Driver/library version mismatch")
    with pytest.raises(Refused) as refused:
        driver.lease(Request(gpus=1, by="`--gpus 1`"), *[report_of(**SILENT)] * before, failed)
    said = "The GPUs of this machine cannot be used (Driver/library version mismatch), and `--gpus 1` asks for a GPU."
    assert (refused.value.kind, refused.value.message) == ("gpu", said)
    assert "nvidia-smi" in refused.value.hint


def test_all_gpus_are_those_that_work_when_it_is_the_runs_turn(driver, report_of) -> None:
    both, one = report_of({}, {}), report_of({}, {"state": "lost"})
    busy = report_of({"processes": [process(os.getpid())]}, {"state": "lost"})
    found = driver.lease(Request(gpus="all", by="`--gpus all`"), both, busy, one)
    assert [each.number for each in found.units] == [0]
    (told,) = driver.told
    assert told.startswith("waiting for a GPU: GPU 0 is used by") and "GPU 1" not in told


def test_a_device_that_works_again_is_one_of_all_again(driver, report_of) -> None:
    mine = [process(os.getpid())]
    busy = report_of({"processes": mine}, {"state": "lost"})
    found = driver.lease(Request(gpus="all"), report_of({}, {}), busy, report_of({}, {}))
    assert [each.number for each in found.units] == [0, 1]


def test_all_gpus_are_refused_when_the_last_one_fails(driver, report_of) -> None:
    with pytest.raises(Refused, match="This machine has no GPU that works, and the run asks for a GPU"):
        driver.lease(Request(gpus="all"), report_of({}), report_of({"state": "lost"}))


@pytest.mark.parametrize("gpus", [1, "all"])
def test_instances_that_are_cut_anew_meanwhile_are_queued_up_for_anew(driver, report_of, gpus: Any) -> None:
    def cut(uuid: str) -> dict[str, Any]:
        memory = {"memory_total": 5 * GIB, "memory_free": 5 * GIB}
        part = {"index": 0, "name": "1g.5gb", "uuid": f"MIG-{uuid}-{os.getpid()}", "gpu_instance": 7, **memory}
        return report_of({"mig": True, "instances": [part]})

    found = driver.lease(Request(gpus=gpus), cut("old"), cut("new"))
    assert found.uuids == (f"MIG-new-{os.getpid()}",)


@pytest.fixture
def waiter(report_of) -> Iterator[subprocess.Popen[str]]:
    """A run that came before and could use the only device."""
    code = (
        "import sys; from holdfast.farside.gpu.leasing import registry\n"
        "places = registry.queue_up(1, sys.argv[1:]); print(flush=True); input()"
    )
    argv = [sys.executable, "-c", code, report_of({})["devices"][0]["uuid"]]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"
        yield process
        process.kill()


def test_one_that_is_stopped_keeps_nobody_waiting_and_has_its_place_when_it_goes_on(driver, report_of, waiter) -> None:
    def stopped() -> bool:
        with open(f"/proc/{waiter.pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    waits: list[bool] = []

    def stop_then_go_on() -> None:
        waits.append(stopped())
        waiter.send_signal(signal.SIGSTOP)
        wait_for(stopped)

    driver.then = stop_then_go_on
    first = driver.lease(Request(gpus=1), report_of({}))
    assert waits == [False]
    assert driver.told == ["waiting for a GPU: 1 run ahead"]
    registry.close(first.sockets)
    waiter.send_signal(signal.SIGCONT)
    wait_for(lambda: not stopped())
    driver.then = stop_then_go_on
    driver.lease(Request(gpus=1), report_of({}))
    assert waits == [False, False]


def test_a_place_that_outlives_its_run_keeps_nobody_waiting(driver, report_of, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    with monkeypatch.context() as changed:
        changed.setattr(registry.os, "getpid", lambda: gone.pid)
        _, places = registry.queue_up(1, [report_of({})["devices"][0]["uuid"]])
    try:
        driver.lease(Request(gpus=1), report_of({}))
    finally:
        registry.close(places)
    assert driver.told == []


@pytest.mark.parametrize(("count", "said"), [(1, "1 run ahead"), (2, "2 runs ahead")])
def test_one_who_is_not_next_hears_how_many_are(driver, report_of, count: int, said: str) -> None:
    uuids = [each["uuid"] for each in report_of({})["devices"]]
    places = [registry.queue_up(1, uuids)[1] for _ in range(count)]
    driver.then = lambda: [registry.close(each) for each in places]
    driver.lease(Request(gpus=1), report_of({}))
    assert driver.told == [f"waiting for a GPU: {said}"]


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
            "nvidia-smi",
        ),
        (
            Request(gpus=1, min_memory=40 * GIB),
            2,
            "ok",
            "No GPU of this machine has 40.0 GiB of memory",
            "has 12.0 GiB",
        ),
        (
            Request(gpus=1, min_memory=80 * 10**9),
            1,
            "ok",
            "No GPU of this machine has 80 GB (74.5 GiB) of memory or more",
            "has 12.0 GiB",
        ),
        (
            Request(gpus=2, min_memory=512 << 20),
            [12 * GIB, 256 << 20],
            "ok",
            "Only 1 of this machine's 2 GPUs has 512 MiB of memory or more, and the run asks for 2.",
            "has 12.0 GiB",
        ),
        (
            Request(gpus=3, min_memory=8 * GIB),
            [12 * GIB, 12 * GIB, GIB],
            "ok",
            "Only 2 of this machine's 3 GPUs have 8.0 GiB of memory or more, and the run asks for 3.",
            "has 12.0 GiB",
        ),
    ],
)
def test_more_than_a_machine_can_ever_give_is_refused(
    driver, report_of, request_: Request, devices: int | list[int], state: str, said: str, hint: str
) -> None:
    totals = [12 * GIB] * devices if isinstance(devices, int) else devices
    report = report_of(
        *[{"memory_total": each} for each in totals],
        state=state,
        problem="Driver Not Loaded." if state == "failed" else "",
    )
    with pytest.raises(Refused) as refused:
        driver.lease(request_, report)
    assert refused.value.kind == "gpu"
    assert said in refused.value.message
    assert hint in refused.value.hint


def test_a_machine_that_lost_a_device_meanwhile_refuses_too(driver, report_of) -> None:
    lost = report_of({}, {"state": "lost"})
    with pytest.raises(Refused, match="This machine has 1 GPU, and the run asks for 2"):
        driver.lease(Request(gpus=2), report_of({}, {}), lost)
