"""The verdict as a table: what was known, how it ended, what was seen, and what is said."""

from __future__ import annotations

import tracemalloc
from typing import Any, NamedTuple

import pytest

from holdfast.farside.environments.findings import Finding
from holdfast.farside.gpu.judging import reasons, tallies, verdict
from holdfast.farside.gpu.judging.evidence import Part, work
from holdfast.farside.gpu.judging.facts import NOTHING, End, Facts, Left
from holdfast.farside.gpu.judging.verdict import Verdict, judge
from holdfast.farside.gpu.request import Request
from holdfast.farside.gpu.watching.samples import Loss, Row, Samples, Watched
from kit.gpu_values import (
    ASKED,
    CPU_BUILD,
    GIB,
    MISMATCH,
    NO_CODE,
    START,
    TOO_OLD,
    device,
    end,
    facts,
    holding,
    leasing,
    row,
    samples,
    strange,
    uuid,
    working,
)

MIG = "MIG-00000000-0000-4000-8000-000000000000"
NOBODY = Request()
REQUIRED = Request(asked=True, require=True, by="`--require-gpu`")
QUIET = [[row()]] * 10
HIDDEN_PIDS = row(0, 60, memory=GIB, unmatched=1)
ONE_MIG = facts(device(mig=True, name="A100"))
LEFT = (Left(4000, "python", uuid(0), GIB),)
BLIND = holding(own_utilisation=None)
OWN_NUMBERS = {"has_machine_pids": False}
"""The run's processes have other numbers than the driver gives, as in a container."""
LXML = Finding("other-python", "lxml", "`lxml` 5.0 was built for another Python.", "Build it again.", "error")
ONNX = TOO_OLD._replace(package="onnxruntime-gpu", sentence="ONNX Runtime was built for CUDA 12.")
SLEPT = {"at": lambda place: place if place < 8 else place + 60.0}


class Case(NamedTuple):
    facts: Facts
    end: End
    samples: Samples
    state: str
    reason: str


def case(known: Facts, ended: End, seen: Samples, said: str) -> Case:
    state, _, reason = said.partition("/")
    return Case(known, ended, seen, state, reason)


TEN = end(10.4)
FAILED = end(10.4, code=1)
LIES = {
    "CPU build of PyTorch": case(leasing(1, findings=(CPU_BUILD,)), TEN, samples(*QUIET), "not-used/cpu-build"),
    "CPU build, and somebody who cannot be matched works on the leased device": case(
        leasing(1, findings=(CPU_BUILD,)), TEN, samples(*[[HIDDEN_PIDS]] * 10), "not-used/cpu-build"
    ),
    "CPU build, nobody asked": case(
        facts(request=NOBODY, findings=(CPU_BUILD,), frameworks=("torch",)), TEN, samples(*QUIET), "not-used/cpu-build"
    ),
    "CPU build of TensorFlow": case(
        facts(findings=(CPU_BUILD._replace(package="tensorflow-cpu"),), frameworks=("tensorflow",)),
        *(TEN, samples(*QUIET), "not-used/cpu-build"),
    ),
    "driver too old": case(facts(findings=(TOO_OLD,)), FAILED, samples(*QUIET), "not-used/driver-too-old"),
    "driver too old, by its output": case(
        facts(), end(10.4, 1, said=("driver-too-old",)), samples(*QUIET), "not-used/driver-too-old"
    ),
    "no kernel image": case(facts(findings=(NO_CODE,)), FAILED, samples(*QUIET), "not-used/no-code-for-gpu"),
    "plugin of another version": case(facts(findings=(MISMATCH,)), TEN, samples(*QUIET), "not-used/wrong-build"),
    "CUDA_VISIBLE_DEVICES empty": case(facts(visible=""), TEN, samples(*QUIET), "not-used/hidden"),
    "container without GPUs": case(facts(container=""), TEN, samples(*QUIET), "not-used/container-without-gpus"),
    "container without GPUs, nobody asked": case(
        facts(request=NOBODY, container="", frameworks=("torch",)),
        *(TEN, samples(*QUIET), "not-used/container-without-gpus"),
    ),
    "device lost mid-run": case(
        leasing(1),
        FAILED,
        samples(*[[working()]] * 5, losses=(Loss(START + 6, 0, "GPU is lost", None),)),
        "partly-used/device-lost",
    ),
    "device lost, and the script went on": case(
        facts(),
        TEN,
        samples(*[[working()]] * 5, *[[]] * 5, losses=(Loss(START + 6, 0, "", None),)),
        "partly-used/device-lost",
    ),
    "device lost before it was used": case(
        leasing(1),
        FAILED,
        samples([row()], *[[]] * 5, losses=(Loss(START + 2, 0, "GPU is lost", None),)),
        "not-available/device-lost",
    ),
    "no device works": case(facts(device(state="lost")), TEN, Samples(), "not-available/device-lost"),
    "work on another GPU than leased": case(
        leasing(1, 2), TEN, samples(*[[row(), working(1)]] * 10), "partly-used/other-device"
    ),
    "work beside the leased GPU": case(
        leasing(1, 2), TEN, samples(*[[working(), working(1)]] * 10), "used/other-device"
    ),
    "stranger on the GPU": case(facts(), TEN, samples(*[[strange()]] * 10), "not-used/stranger"),
    "stranger, and the lease is no proof": case(leasing(1), TEN, samples(*[[strange()]] * 10), "not-used/stranger"),
    "idle": case(leasing(1), TEN, samples(*[[holding()]] * 10), "not-used/idle"),
    "idle, where no process has a utilisation": case(leasing(1), end(60.4), samples(*[[BLIND]] * 60), "not-used/idle"),
    "idle, though CUDA_VISIBLE_DEVICES is empty": case(
        facts(visible=""), TEN, samples(*[[holding()]] * 10), "not-used/idle"
    ),
    "stranger, and the run's own processes were named": case(
        facts(**OWN_NUMBERS), TEN, samples(*[[holding()]] * 5, *[[strange()]] * 5), "not-used/stranger"
    ),
    "a package that is no framework is no reason": case(
        facts(findings=(LXML,), frameworks=("torch",)), TEN, samples(*QUIET), "not-used/untouched"
    ),
    "another framework would have fitted": case(
        facts(findings=(ONNX,), frameworks=("onnxruntime", "torch")), TEN, samples(*QUIET), "not-used/untouched"
    ),
    "no framework fits": case(
        facts(findings=(LXML, ONNX, CPU_BUILD), frameworks=("onnxruntime", "torch")),
        *(TEN, samples(*QUIET), "not-used/driver-too-old"),
    ),
    "untouched, in a container with its own numbers": case(
        facts(**OWN_NUMBERS), TEN, samples(*QUIET), "not-used/untouched"
    ),
    "untouched, and others left the device meanwhile": case(
        facts(device(memory_free=4 * GIB)), TEN, samples(*[[row(memory=8 * GIB)]] * 5, *QUIET[:5]), "not-used/untouched"
    ),
    "untouched": case(leasing(1), TEN, samples(*QUIET), "not-used/untouched"),
    "two leased, one used": case(leasing(2), TEN, samples(*[[working(), row(1)]] * 10), "partly-used/partly"),
    "two leased, one only held": case(leasing(2), TEN, samples(*[[working(), holding(1)]] * 10), "partly-used/partly"),
    "hardly any of the time": case(
        facts(), end(60.2), samples([working()], [working()], *[[holding()]] * 58), "partly-used/partly"
    ),
    "no GPU": case(facts()._replace(devices=()), TEN, Samples(), "not-available/no-gpu"),
    "no driver": case(
        facts(driver=None)._replace(devices=(), driver_state="no-driver"), TEN, Samples(), "not-available/no-driver"
    ),
    "a driver that fails, and nobody asked": case(
        facts(request=NOBODY, frameworks=("torch",), problem="Driver/library version mismatch")._replace(
            devices=(), driver_state="failed"
        ),
        *(TEN, Samples(), "not-available/no-driver"),
    ),
    "memory left after the end": case(
        leasing(1), end(10.4, left=LEFT), samples(*[[working()]] * 10), "used/memory-left"
    ),
    "memory exhausted, by its output": case(
        leasing(1), end(10.4, 1, said=("out-of-gpu-memory",)), samples(*[[working()]] * 10), "used/out-of-gpu-memory"
    ),
    "memory exhausted, as was seen": case(
        leasing(1), FAILED, samples(*[[working(memory=12 * GIB)]] * 10), "used/out-of-gpu-memory"
    ),
    "memory exhausted by others": case(
        facts(), end(10.4, 1, said=("out-of-gpu-memory",)), samples(*[[strange()]] * 10), "not-used/out-of-gpu-memory"
    ),
}
HONEST = {
    "two seconds": case(leasing(1), end(2), samples([row()], [row()]), "unknown/too-short"),
    "two seconds, once seen": case(leasing(1), end(2), samples([working()], [row()]), "used/ok"),
    "two seconds, memory seen": case(facts(), end(2), samples([row()], [holding()]), "used/ok"),
    "memory held for a moment": case(facts(), TEN, samples(*QUIET[:6], *[[holding()]] * 4), "used/ok"),
    "two devices": case(leasing(2), TEN, samples(*[[working(), working(1)]] * 10), "used/ok"),
    "two devices, the second seen late": case(
        leasing(2), end(3), samples([working(), row(1)], [working(), row(1)]), "used/ok"
    ),
    "MIG": case(
        ONE_MIG, TEN, samples(*[[row(0, None, own=(1,), own_memory=GIB, own_utilisation=None)]] * 10), "used/ok"
    ),
    "a leased instance of MIG": case(
        ONE_MIG._replace(leased=(MIG,)),
        *(TEN, samples(*[[row(0, None, own=(1,), own_memory=GIB, own_utilisation=None)]] * 10), "used/ok"),
    ),
    "MIG without names": case(
        ONE_MIG, TEN, samples(*[[row(0, None, own_utilisation=None)]] * 10), "unknown/no-attribution"
    ),
    "late first use": case(leasing(1), end(30.2), samples(*[[row()]] * 28, [working()], [working()]), "used/ok"),
    "use after the end is seen": case(leasing(1), end(1.5), samples([row()], [holding()]), "used/ok"),
    "processes that cannot be matched": case(facts(), TEN, samples(*[[HIDDEN_PIDS]] * 10), "unknown/no-attribution"),
    "one that cannot be matched, for a moment": case(
        facts(), TEN, samples(*QUIET[:9], [row(0, 0, unmatched=1)]), "unknown/no-attribution"
    ),
    "no names at all, and it works": case(facts(), TEN, samples(*[[row(0, 50)]] * 10), "unknown/no-attribution"),
    "a leased device whose processes cannot be matched": case(
        leasing(1), TEN, samples(*[[HIDDEN_PIDS]] * 10), "used/ok"
    ),
    "NVML stalls at once": case(leasing(1), end(60, is_stalled=True), samples(), "unknown/nvml-stalled"),
    "NVML stalls later": case(leasing(1), end(60, is_stalled=True), samples(*QUIET), "unknown/nvml-stalled"),
    "NVML stalls, and nobody says so": case(leasing(1), end(60), samples(*QUIET), "unknown/nvml-stalled"),
    "NVML stalls in between": case(
        leasing(1), end(75), samples(*[[row()]] * 15, skipped=59, **SLEPT), "unknown/nvml-stalled"
    ),
    "the machine slept": case(leasing(1), end(75), samples(*[[row()]] * 15, **SLEPT), "unknown/not-watched"),
    "the machine slept until the end": case(
        leasing(1), end(67.5), samples(*[[row()]] * 8, **SLEPT), "unknown/not-watched"
    ),
    "NVML stalls, and two seconds are no time to tell": case(
        leasing(1), end(2, is_stalled=True), samples(), "unknown/too-short"
    ),
    "NVML answers, and stalls within four seconds": case(
        leasing(1), end(4, is_stalled=True), samples(*QUIET[:3]), "unknown/nvml-stalled"
    ),
    "two seconds, before anybody looked": case(leasing(1), end(2), Samples(), "unknown/too-short"),
    "NVML cannot be used, two seconds": case(
        leasing(1), end(2), Samples(began=START, problem="no"), "unknown/not-watched"
    ),
    "memory grows, and nobody is named": case(
        facts(), TEN, samples(*QUIET[:3], *[[row(memory=8 * GIB)]] * 7), "unknown/no-attribution"
    ),
    "memory has grown since the start, and nobody is named": case(
        facts(), TEN, samples(*[[row(memory=8 * GIB)]] * 10), "unknown/no-attribution"
    ),
    "memory grows, of a device of which the samples alone know": case(
        NOTHING._replace(request=ASKED), TEN, samples(*QUIET[:3], *[[row(memory=GIB)]] * 7), "unknown/no-attribution"
    ),
    "memory held for a moment, and after the end": case(facts(), end(3.4), samples(*[[holding()]] * 8), "used/ok"),
    "memory held, and no process has a utilisation": case(leasing(1), TEN, samples(*[[BLIND]] * 10), "used/ok"),
    "memory held for long, and no process has a utilisation": case(
        leasing(1), end(59.4), samples(*[[BLIND]] * 59), "used/ok"
    ),
    "the script sets CUDA_VISIBLE_DEVICES itself": case(
        facts(visible=""), TEN, samples(*[[working(own_utilisation=None)]] * 10), "used/ok"
    ),
    "CUDA_VISIBLE_DEVICES empty, and memory held for a moment": case(
        facts(visible=""), TEN, samples(*QUIET[:7], *[[holding()]] * 3), "used/ok"
    ),
    "a container without GPUs that reaches one all the same": case(
        facts(container=""), TEN, samples(*[[holding()]] * 3), "used/ok"
    ),
    "somebody else has the number that the driver names": case(
        facts(**OWN_NUMBERS), TEN, samples(*[[strange()]] * 10), "unknown/no-attribution"
    ),
    "somebody else has the number that the driver names on a leased device": case(
        leasing(1, **OWN_NUMBERS), TEN, samples(*[[strange()]] * 10), "used/ok"
    ),
    "a number that is known here by chance, and the device is idle": case(
        facts(**OWN_NUMBERS), TEN, samples(*[[row(others=(7000,))]] * 10), "unknown/no-attribution"
    ),
    "NVML stalls before the start": case(
        facts()._replace(devices=(), driver_state="timed-out", problem="GPU 0 does not answer within 3 s"),
        *(end(60), Samples(), "unknown/nvml-stalled"),
    ),
    "NVML stalls after use": case(leasing(1), end(60, is_stalled=True), samples(*[[working()]] * 5), "used/ok"),
    "the owner is gone": case(leasing(1), end(1, code=None), samples(), "unknown/supervisor-lost"),
    "the owner is gone, after use": case(leasing(1), end(5, code=None), samples([working()]), "used/ok"),
    "nobody watched": case(leasing(1), end(60), Samples(), "unknown/not-watched"),
    "cannot be watched": case(leasing(1), end(60), Samples(began=START, problem="no"), "unknown/not-watched"),
    "a device with nothing but a name": case(
        facts(device(state="named", name="Apple M2", uuid=""))._replace(driver_state="no-driver"),
        *(end(60), Samples(), "unknown/not-watched"),
    ),
    "a CPU build beside a device with nothing but a name": case(
        facts(device(state="named", name="Apple M2"), findings=(CPU_BUILD,))._replace(driver_state="no-driver"),
        *(end(60), Samples(), "unknown/not-watched"),
    ),
    "out of memory, caught": case(
        leasing(1), end(10.4, 0, said=("out-of-gpu-memory",)), samples(*[[working()]] * 10), "used/ok"
    ),
    "all memory in use, canceled": case(
        leasing(1), end(10.4, None, signal=15), samples(*[[working(memory=12 * GIB)]] * 10), "used/ok"
    ),
    "out of memory before anybody saw it": case(
        leasing(1), end(1, 1, said=("out-of-gpu-memory",)), samples([row()]), "unknown/out-of-gpu-memory"
    ),
    "the output says why, too short to be proved": case(
        leasing(1), end(1, 1, said=("no-code-for-gpu",)), samples([row()]), "unknown/no-code-for-gpu"
    ),
    "ECC error, by its output": case(
        leasing(1), end(1, 1, said=("device-lost",)), samples([row()]), "unknown/device-lost"
    ),
    "a device that was not asked for is lost": case(
        leasing(1, 2), TEN, samples(*[[working()]] * 10, losses=(Loss(START + 3, 1, "", None),)), "used/ok"
    ),
    "a device that came back": case(
        leasing(1), TEN, samples(*[[working()]] * 10, losses=(Loss(START + 3, 0, "", START + 4),)), "used/ok"
    ),
    "one of four, not leased": case(
        facts(*map(device, range(4))), TEN, samples(*[[working(2), row(0), row(1), row(3)]] * 10), "used/ok"
    ),
    "a stranger beside the run": case(facts(), TEN, samples(*[[working(others=(7000,))]] * 10), "used/ok"),
    "AMD": case(
        facts(device(state="named", name="AMD"))._replace(driver_state="no-driver"),
        *(TEN, samples(*[[working()]] * 10, source="amdsmi"), "used/ok"),
    ),
    "old runs look seldom": case(
        facts(), end(100_000), samples(*[[working()]] * 20, at=lambda n: 99_800 + 10 * n), "used/ok"
    ),
    "a screen is drawn on a leased device that nobody uses": case(
        leasing(1, findings=(CPU_BUILD,)), TEN, samples(*[[row(0, 3)]] * 10), "not-used/cpu-build"
    ),
    "a screen is drawn on a leased device, and nothing else is known": case(
        leasing(1), TEN, samples(*[[row(0, 3)]] * 10), "unknown/no-attribution"
    ),
    "one that cannot be matched, beside strangers that can": case(
        facts(), TEN, samples(*[[row(others=(7000,))]] * 9, [row(0, 0, unmatched=1)]), "unknown/no-attribution"
    ),
    "the last minute of many was not watched": case(
        leasing(1),
        end(1000),
        samples(*[[row()]] * 760, at=lambda n: n if n < 600 else 2 * n - 600),
        "unknown/nvml-stalled",
    ),
    "NVML does not answer at the end": case(
        leasing(1), end(10.4, is_stalled=True), samples(*QUIET), "unknown/nvml-stalled"
    ),
    "nobody asked, nothing installed": case(facts(request=NOBODY), TEN, samples(*QUIET), "not-asked/not-asked"),
    "nobody asked, and it is used": case(facts(request=NOBODY), TEN, samples(*[[working()]] * 10), "used/ok"),
    "somebody said no": case(
        facts(request=NOBODY._replace(gpus=0), refuses=True, visible="", frameworks=("torch",)),
        *(TEN, samples(*QUIET), "not-asked/not-asked"),
    ),
    "no GPU, nobody asked": case(
        NOTHING._replace(driver_state="no-driver", frameworks=("torch",)), TEN, Samples(), "not-asked/not-asked"
    ),
    "never started, nobody asked": case(
        facts(request=NOBODY), end(0)._replace(started=None), Samples(), "not-asked/not-asked"
    ),
    "canceled before the start": case(
        facts(), end(0, None, signal=15)._replace(started=None), Samples(), "unknown/interrupted-before-start"
    ),
    "canceled while strangers were there": case(
        facts(device(strangers=(7000,))), end(0)._replace(started=None), Samples(), "not-available/stranger"
    ),
    "refused for its build": case(
        facts(request=REQUIRED, findings=(CPU_BUILD,)), end(0)._replace(started=None), Samples(), "not-used/cpu-build"
    ),
    "refused for a driver that does not answer": case(
        facts(request=REQUIRED)._replace(devices=(), driver_state="timed-out"),
        *(end(0)._replace(started=None), Samples(), "unknown/nvml-stalled"),
    ),
    "refused for too little memory": case(
        facts(device(memory_free=GIB), request=REQUIRED._replace(min_memory=8 * GIB)),
        *(end(0)._replace(started=None), Samples(), "not-available/out-of-gpu-memory"),
    ),
}
CASES = {**LIES, **HONEST}


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_judged_as_the_table_says(name: str) -> None:
    known, ended, seen, state, reason = CASES[name]
    found = judge(known, ended, seen)
    assert (found.state, found.reason) == (state, reason), found.sentence


@pytest.mark.parametrize("name", CASES)
def test_a_fault_has_a_sentence_and_a_remedy_without_blanks(name: str) -> None:
    found = judge(*CASES[name][:3])
    assert found.sentence and "%(" not in found.sentence + found.remedy
    assert bool(found.remedy) == (found.reason not in (reasons.OK, reasons.NOT_ASKED))
    assert "  " not in found.sentence and ".." not in found.sentence


def test_every_reason_is_given_to_some_run() -> None:
    assert {each.reason for each in CASES.values()} == set(reasons.REASONS)
    assert {each.state for each in CASES.values()} == set(verdict.STATES)


@pytest.mark.parametrize(
    ("visible", "hides"),
    [
        *[("", True), ("-1", True), ("NoDevFiles", True), ("2", True), ("none", True), ("-1,0", True), (",0", True)],
        *[("GPU-ffffffff", True), ("GPU-0000000", True), (MIG, True), ("all", True), (None, False)],
        *[("0", False), (" 1", False), ("1,0", False), ("0,-1", False), ("0,5", False), (uuid(1), False)],
        *[("GPU-00000001", False), (f"{uuid(0)},{uuid(1)}", False)],
    ],
)
def test_what_hides_the_devices_is_told_from_what_chooses_among_them(visible: str | None, hides: bool) -> None:
    known = facts(device(0), device(1), visible=visible)
    found = judge(known, TEN, samples(*[[row(0), row(1)]] * 10))
    assert found.reason == (reasons.HIDDEN if hides else reasons.UNTOUCHED)


@pytest.mark.parametrize("visible", [MIG, "MIG-" + uuid(0) + "/1/0", "0"])
def test_an_instance_of_mig_is_no_name_that_hides(visible: str) -> None:
    known = facts(device(mig=True), visible=visible)
    assert judge(known, TEN, samples(*[[row(0, None)]] * 10)).reason != reasons.HIDDEN


def test_what_is_said_of_use_names_device_mean_peak_and_first_use() -> None:
    seen = samples(*[[row()]] * 3, *[[working(percent=100)]] * 7)
    found = judge(leasing(1), end(10), seen)
    assert found.sentence == "GPU used: Tesla K80 (GPU-00000000), 70 % mean, 8.0 GiB peak, first use after 4 s"
    assert found.evidence == "utilisation" and found.waited == pytest.approx(0.3)
    assert found.spells == ((0.0, 3.0),)
    (use,) = found.devices
    assert use == verdict.Use(0, uuid(0), "Tesla K80", 70.0, 8 * GIB, 4.0, 0.7, True)


SAID = {
    "CPU build of PyTorch": (
        "GPU NOT used: PyTorch 2.13.0+cpu was built without CUDA: it computes on the CPU and leaves the GPU idle."
    ),
    "CUDA_VISIBLE_DEVICES empty": (
        "GPU NOT used: `CUDA_VISIBLE_DEVICES` is empty, which hides Tesla K80 (GPU-00000000)."
    ),
    "container without GPUs": "GPU NOT used: the container has no GPUs; the machine has Tesla K80 (GPU-00000000).",
    "two leased, one used": (
        "GPU partly used: 1 of 2 leased GPUs was used: Tesla K80 (GPU-00000000), 74 % mean, 8.0 GiB peak, "
        "first use after 1 s; Tesla K80 (GPU-00000001), not used."
    ),
    "hardly any of the time": (
        "GPU partly used: the GPU worked only 3 % of the time since its first use: "
        "Tesla K80 (GPU-00000000), 2 % mean, 8.0 GiB peak, first use after 1 s."
    ),
    "stranger on the GPU": (
        "GPU NOT used: what Tesla K80 (GPU-00000000) computed was for others: process 7000, in 10 of 10 looks."
    ),
    "device lost mid-run": (
        "GPU partly used: Tesla K80 (GPU-00000000) was lost after 6 s (GPU is lost); seen until then: "
        "Tesla K80 (GPU-00000000), 74 % mean, 8.0 GiB peak, first use after 1 s."
    ),
    "memory left after the end": (
        "GPU used: Tesla K80 (GPU-00000000), 74 % mean, 8.0 GiB peak, first use after 1 s; "
        "after the end process 4000 (python) held 1.0 GiB of GPU memory."
    ),
    "no driver": "GPU not available: the machine has no NVIDIA driver.",
    "memory held, and no process has a utilisation": (
        "GPU used: Tesla K80 (GPU-00000000), 1.0 GiB peak, first use after 1 s"
    ),
    "the machine slept": (
        "GPU use unknown: nobody looked for 60 s of the 75 s that the script ran, "
        "as where the machine sleeps or its clock is set."
    ),
    "two seconds": "GPU use unknown: the script ran too short to be watched: 2 looks, and three are needed.",
    "nobody asked, nothing installed": "GPU not asked for.",
}


@pytest.mark.parametrize("name", SAID)
def test_the_whole_sentence(name: str) -> None:
    assert judge(*CASES[name][:3]).sentence == SAID[name]


def test_a_remedy_names_the_file_and_the_line() -> None:
    assert judge(*CASES["container without GPUs"][:3]).remedy == (
        "Write `nvidiaDocker: true` in `my_dsvm.compute`, or submit with `--gpus all`."
    )
    assert "(`--gpus 1`)" in judge(*CASES["no GPU"][:3]).remedy


def test_a_machine_that_is_looked_at_ever_less_often_is_not_taken_for_idle() -> None:
    """Ten minutes of work by the second count less than hours of it by ten seconds."""
    times = [*range(1, 601), *range(602, 3601, 2), *range(3605, 21601, 5), *range(21610, 40001, 10)]
    looks = [[working()] if time > 3600 else [holding()] for time in times]
    found = judge(facts(), end(40_000), samples(*looks, at=lambda place: float(times[place - 1])))
    assert found.reason == reasons.OK and found.waited == pytest.approx(0.09, abs=0.001)
    assert found.devices[0].mean == pytest.approx(67.3, abs=0.1)


def test_a_gap_between_looks_counts_neither_as_work_nor_as_waiting() -> None:
    seen = samples(*[[working()]] * 30, [holding()], at=lambda place: place if place < 16 else place + 300)
    found = judge(facts(), end(331), seen)
    assert found.waited == pytest.approx(1 / 31) and found.devices[0].busy == pytest.approx(30 / 31, abs=0.001)


def test_nobody_is_told_to_restart_a_machine_that_slept() -> None:
    found = judge(leasing(1), end(10_830), samples(*[[row()]] * 30, at=lambda place: place + 10_800.0 * (place > 20)))
    assert "nobody looked for 2 h 59 min of the 3 h that" in found.sentence
    assert found.remedy.startswith("Keep the machine from sleeping")


def test_two_weeks_on_eight_gpus_are_judged_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is weighed once, whatever there is to say; no copies are kept of them."""
    weighed = []

    def count(row: Row, part: Part, attributed: bool) -> tuple[int, str]:
        weighed.append(row.number)
        return work(row, part, attributed)

    monkeypatch.setattr(tallies, "work", count)
    looks = [[working(number) if place % 3 else holding(number) for number in range(8)] for place in range(500)]
    seen = samples(*looks)
    tracemalloc.start()
    found = judge(leasing(8), end(500), seen)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.reason == reasons.OK and len(weighed) == 8 * 500
    assert peak < 8 * 500 * 100  # a row alone has 136 bytes and more


def test_of_mig_it_is_not_said_how_much_of_the_time_it_waited() -> None:
    found = judge(*CASES["MIG"][:3])
    assert (found.waited, found.spells, found.evidence) == (None, (), "memory")
    assert found.sentence == "GPU used: A100 (GPU-00000000), 1.0 GiB peak, first use after 1 s"


def test_a_device_of_which_only_the_samples_know_is_judged_too() -> None:
    seen = samples(*[[working()]] * 5, devices=(Watched(0, uuid(0), "Tesla K80", 12 * GIB, False),))
    assert judge(NOTHING._replace(request=ASKED), end(5), seen).reason == reasons.OK


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_is_the_same_after_it_was_written_and_read(name: str) -> None:
    import json

    found = judge(*CASES[name][:3])
    assert verdict.parse(json.loads(json.dumps(verdict.as_json(found)))) == found


@pytest.mark.parametrize("found", [None, 5, {}, {"state": "used"}, {**dict.fromkeys(Verdict._fields), "state": "?"}])
def test_what_is_no_verdict_is_refused(found: Any) -> None:
    with pytest.raises(ValueError, match="verdict"):
        verdict.parse(found)
