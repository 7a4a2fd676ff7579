"""The devices that a run gets, what keeps it from them, and what it is refused."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.farside.gpu.lease import leases, registry
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.system.refusal import Refused
from unit.farside.gpu.conftest import process

GIB = 1 << 30


def test_what_is_free_is_had_at_once_and_nothing_is_said(driver, report_of):
    report = report_of({}, {}, {})
    found = driver.lease(GpuRequest(gpus=2), report)
    assert found.uuids == tuple(each["uuid"] for each in report["devices"][:2])
    assert [(each.label, each.cdi) for each in found.units] == [("GPU 0", "0"), ("GPU 1", "1")]
    assert (driver.told, driver.asked) == ([], 1)
    assert not any(each.usable & set(found.uuids) for each in registry.read().tickets)


def test_a_strangers_process_is_in_the_way_until_it_is_gone_and_is_named_once(driver, report_of):
    busy, free = report_of({"processes": [process(os.getpid())]}), report_of({})
    found = driver.lease(GpuRequest(gpus=1), free, busy, busy, free)
    assert found.units[0].number == 0
    (why,) = driver.waited_for()
    assert why.startswith(f"GPU 0 is used by process {os.getpid()} (")
    assert driver.asked == 3
    assert driver.clock >= 1000 + 2 * leases.ASK_EVERY


MINE, DRAWING, UNSEEN = process(os.getpid()), process(os.getpid(), kind="graphics"), process(2**22 + 5)
LARGE = {"memory_total": 40 * GIB, "memory_free": 40 * GIB}
ALL = GpuRequest(gpus="all")


@pytest.mark.parametrize(
    ("request_", "known", "answer", "waits", "numbers"),
    [
        (GpuRequest(gpus=1), [{"processes": [MINE]}, {"processes": [DRAWING]}], None, "", [1]),
        (GpuRequest(gpus=1), [{"processes": [MINE, DRAWING]}], None, "", [0]),
        (
            GpuRequest(gpus=1),
            [{}],
            [{"processes": [MINE, process(1, kind="graphics"), process(1)]}],
            f"{os.getpid()} (",
            [0],
        ),
        (GpuRequest(gpus=1), [{}], [{"processes": [UNSEEN]}], f"is used by process {2**22 + 5} (", [0]),
        (GpuRequest(gpus=1, min_memory=8 * GIB), [{}], [{"memory_free": 3 * GIB}], "GPU 0 has 3.0 GiB free", [0]),
        (GpuRequest(gpus="all", min_memory=8 * GIB), [{"memory_total": 4 * GIB}, LARGE, {}], None, "", [1, 2]),
        (ALL, [{}, {}], [{"processes": [MINE]}, {"state": "lost"}], "GPU 0 is used by", [0, 1]),
    ],
    ids=[
        "the device without a stranger is handed out",
        "what draws and computes for that is a screen's",
        "who shares a screen's device to compute is in the way",
        "a process that is invisible here is in the way too",
        "enough of its memory must be free",
        "all are all that are large enough",
        "a device that works again is one of all again",
    ],
)
def test_what_is_free_is_handed_out_and_what_is_in_the_way_is_told(
    driver, report_of, request_, known, answer, waits, numbers
):
    before = report_of(*known)
    later = [report_of(*answer), before] if answer else []
    assert [each.number for each in driver.lease(request_, before, *later).units] == numbers
    assert len(driver.told) == bool(waits)
    assert waits in "".join(driver.waited_for())


SILENT = {"state": "timed-out", "problem": "the driver does not answer within 60 s"}


@pytest.mark.parametrize(
    ("gpus", "is_known", "waits_for", "asked"),
    [
        (1, True, "waiting for a GPU", 3),
        (1, False, "waiting for a GPU", 4),
        (2, False, "waiting for 2 GPUs", 4),
        ("all", False, "waiting for the GPUs", 4),
    ],
)
def test_a_driver_that_does_not_answer_yet_or_any_more_is_waited_for(
    driver, report_of, gpus, is_known, waits_for, asked
):
    silent, free = report_of(**SILENT), report_of({}, {})
    found = driver.lease(GpuRequest(gpus=gpus), free if is_known else silent, silent, silent, free)
    assert len(found.units) == (2 if gpus == "all" else gpus)
    assert driver.told == [f"{waits_for}: the driver does not answer"]
    assert driver.asked == asked
    assert driver.clock >= 1000 + 2 * leases.ASK_EVERY


@pytest.mark.parametrize("is_known", [True, False])
def test_a_driver_that_never_answers_is_given_up_after_ten_minutes(driver, report_of, is_known):
    silent = report_of(**SILENT)
    with pytest.raises(Refused) as refused:
        driver.lease(GpuRequest(gpus=1, by="`--gpus 1`"), report_of({}) if is_known else silent, silent)
    assert refused.value.kind == "gpu"
    said = "The driver of this machine's GPUs has not answered for 10 min, and `--gpus 1` asks for a GPU."
    assert refused.value.message == said
    assert refused.value.hint.startswith("Restart the machine")
    assert 600 <= driver.clock - 1000 < 610


def test_a_driver_that_answers_now_and_then_is_not_given_up(driver, report_of):
    busy = report_of({"processes": [process(os.getpid())]})
    now_and_then = ([report_of(**SILENT)] * 200 + [busy]) * 2
    driver.lease(GpuRequest(gpus=1), report_of(**SILENT), *now_and_then, report_of({}))
    assert driver.clock - 1000 > 600


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize(
    ("state", "problem", "said", "hint"),
    [
        ("failed", "Driver Not Loaded.", "cannot be used (Driver Not Loaded), and `--gpus 1` asks", "nvidia-smi"),
        ("no-driver", "", "has no NVIDIA driver, and `--gpus 1` asks", "where"),
    ],
)
def test_a_driver_that_fails_is_refused_in_its_own_words(driver, report_of, before, state, problem, said, hint):
    failed = report_of(state=state, problem=problem)
    with pytest.raises(Refused) as refused:
        driver.lease(GpuRequest(gpus=1, by="`--gpus 1`"), *[report_of(**SILENT)] * before, failed)
    assert refused.value.kind == "gpu"
    assert said in refused.value.message
    assert hint in refused.value.hint


def test_all_gpus_are_those_that_work_when_it_is_the_runs_turn(driver, report_of):
    both, one = report_of({}, {}), report_of({}, {"state": "lost"})
    busy = report_of({"processes": [process(os.getpid())]}, {"state": "lost"})
    found = driver.lease(GpuRequest(gpus="all", by="`--gpus all`"), both, busy, one)
    assert [each.number for each in found.units] == [0]
    (why,) = driver.waited_for()
    assert why.startswith("GPU 0 is used by") and "GPU 1" not in why


@pytest.mark.parametrize("gpus", [1, "all"])
def test_instances_that_are_cut_anew_meanwhile_are_queued_up_for_anew(driver, report_of, gpus):
    def cut(uuid: str) -> dict[str, Any]:
        memory = {"memory_total": 5 * GIB, "memory_free": 5 * GIB}
        part = {"index": 0, "name": "1g.5gb", "uuid": f"MIG-{uuid}-{os.getpid()}", "gpu_instance": 7, **memory}
        return report_of({"mig": True, "instances": [part]})

    found = driver.lease(GpuRequest(gpus=gpus), cut("old"), cut("new"))
    assert found.uuids == (f"MIG-new-{os.getpid()}",)


def test_instances_of_a_device_are_leased_one_by_one(driver, report_of):
    parts = [
        {"index": number, "name": "1g.5gb", "uuid": f"MIG-{number}-{os.urandom(6).hex()}", "gpu_instance": number + 7}
        | {"memory_total": 5 * GIB, "memory_free": 5 * GIB}
        for number in range(3)
    ]
    on_first = [process(os.getpid(), instance=7)]
    report = report_of({"mig": True, "instances": parts, "processes": on_first})
    (unit,) = driver.lease(GpuRequest(gpus=1), report).units
    assert (unit.uuid, unit.label, unit.cdi, unit.memory_total) == (
        parts[1]["uuid"],
        "GPU 0 instance 1",
        "0:1",
        5 * GIB,
    )
    with pytest.raises(Refused, match="3 GPUs"):
        driver.lease(GpuRequest(gpus=4), report)


@pytest.mark.parametrize(
    ("request_", "totals", "said", "hint"),
    [
        (GpuRequest(gpus=4, by="`--gpus 4`"), [12, 12], "has 2 GPUs, and `--gpus 4` asks for 4.", "`--gpus 2`"),
        (ALL, [], "has no GPU that works, and the run asks for a GPU.", "where"),
        (
            GpuRequest(gpus=1, min_memory=40 * GIB),
            [12, 12],
            "No GPU of this machine has 40.0 GiB of memory",
            "12.0 GiB",
        ),
        (GpuRequest(gpus=1, min_memory=80 * 10**9), [12], "has 80 GB (74.5 GiB) of memory or more", "has 12.0 GiB"),
        (
            GpuRequest(gpus=2, min_memory=2 * GIB),
            [12, 1],
            "Only 1 of this machine's 2 GPUs has 2.0 GiB",
            "has 12.0 GiB",
        ),
        (
            GpuRequest(gpus=3, min_memory=8 * GIB),
            [12, 12, 1],
            "Only 2 of this machine's 3 GPUs have 8.0 GiB",
            "12.0 GiB",
        ),
    ],
)
def test_more_than_a_machine_can_ever_give_is_refused(driver, report_of, request_, totals, said, hint):
    report = report_of(*[{"memory_total": each * GIB} for each in totals])
    with pytest.raises(Refused) as refused:
        driver.lease(request_, report)
    assert refused.value.kind == "gpu"
    assert said in refused.value.message
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("request_", "left", "said"), [(ALL, 0, "no GPU that works"), (GpuRequest(gpus=2), 1, "1 GPU,")]
)
def test_a_machine_that_lost_a_device_meanwhile_refuses_too(driver, report_of, request_, left, said):
    with pytest.raises(Refused, match=said):
        driver.lease(request_, report_of({}, {}), report_of(*[{}] * left, *[{"state": "lost"}] * (2 - left)))


def test_what_the_driver_said_of_a_device_while_another_run_had_it_does_not_count(driver, report_of) -> None:
    stranger = {"processes": [process(os.getpid())]}
    held = driver.lease(GpuRequest(gpus=1), report_of({}, {}), run="theirs")
    driver.then = lambda: registry.close(held.sockets)
    answers = [report_of({}, stranger), report_of(stranger, stranger), report_of(stranger, {})]
    assert [each.number for each in driver.lease(GpuRequest(gpus=1), report_of({}, {}), *answers).units] == [1]
