"""Runs and their verdicts, as data: what was known, how the run ended, what was seen, and the verdict."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.farside.environments.build_findings import BuildFinding
from holdfast.farside.gpu.gpu_facts import NOTHING, End, GpuFacts, Left
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.samples import Loss, Samples
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
NO_REQUEST = GpuRequest()
REQUIRED = GpuRequest(asked=True, require=True, by="`--require-gpu`")
QUIET = [[row()]] * 10
HIDDEN_PIDS = row(0, 60, memory=GIB, unmatched=1)
ONE_MIG = facts(device(mig=True, name="A100"))
LEFT = (Left(4000, "python", uuid(0), GIB),)
BLIND = holding(own_utilisation=None)
OWN_NUMBERS = {"has_machine_pids": False}
"""The run's processes have other ids than the driver reports, as in a container."""
LXML = BuildFinding("other-python", "lxml", "`lxml` 5.0 was built for another Python.", "Build it again.", "error")
ONNX = TOO_OLD._replace(package="onnxruntime-gpu", sentence="ONNX Runtime was built for CUDA 12.")
SLEPT = {"at": lambda place: place if place < 8 else place + 60.0}


class Case(NamedTuple):
    facts: GpuFacts
    end: End
    samples: Samples
    state: str
    reason: str


def case(known: GpuFacts, ended: End, seen: Samples, said: str) -> Case:
    state, _, reason = said.partition("/")
    return Case(known, ended, seen, state, reason)


TEN = end(10.4)
NEVER = end(0)._replace(started=None)
STOPPED = NEVER._replace(is_stopped=True)
LEASING = ASKED._replace(gpus=1)
FAILED = end(10.4, code=1)
LIES = {
    "CPU build of PyTorch": case(leasing(1, findings=(CPU_BUILD,)), TEN, samples(*QUIET), "not-used/cpu-build"),
    "CPU build, and an unmatched process works on the leased device": case(
        leasing(1, findings=(CPU_BUILD,)), TEN, samples(*[[HIDDEN_PIDS]] * 10), "not-used/cpu-build"
    ),
    "CPU build, not asked for": case(
        facts(request=NO_REQUEST, findings=(CPU_BUILD,), frameworks=("torch",)),
        TEN,
        samples(*QUIET),
        "not-used/cpu-build",
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
    "container without GPUs, not asked for": case(
        facts(request=NO_REQUEST, container="", frameworks=("torch",)),
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
    "a driver that fails, not asked for": case(
        facts(request=NO_REQUEST, frameworks=("torch",), problem="Driver/library version mismatch")._replace(
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
    "NVML stalls without a message": case(leasing(1), end(60), samples(*QUIET), "unknown/nvml-stalled"),
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
    "two seconds, before the first look": case(leasing(1), end(2), Samples(), "unknown/too-short"),
    "NVML cannot be used, two seconds": case(
        leasing(1), end(2), Samples(began=START, problem="no"), "unknown/not-watched"
    ),
    "memory grows, and no process is named": case(
        facts(), TEN, samples(*QUIET[:3], *[[row(memory=8 * GIB)]] * 7), "unknown/no-attribution"
    ),
    "memory has grown since the start, and no process is named": case(
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
    "another process has the pid that the driver names": case(
        facts(**OWN_NUMBERS), TEN, samples(*[[strange()]] * 10), "unknown/no-attribution"
    ),
    "another process has the pid that the driver names on a leased device": case(
        leasing(1, **OWN_NUMBERS), TEN, samples(*[[strange()]] * 10), "unknown/no-attribution"
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
    "not watched": case(leasing(1), end(60), Samples(), "unknown/not-watched"),
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
    "out of memory before it was seen": case(
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
    "a screen is drawn on an unused leased device": case(
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
    "not asked for, nothing installed": case(facts(request=NO_REQUEST), TEN, samples(*QUIET), "not-asked/not-asked"),
    "not asked for, and used": case(facts(request=NO_REQUEST), TEN, samples(*[[working()]] * 10), "used/ok"),
    "declined": case(
        facts(request=NO_REQUEST._replace(gpus=0), refuses=True, visible="", frameworks=("torch",)),
        *(TEN, samples(*QUIET), "not-asked/not-asked"),
    ),
    "no GPU, not asked for": case(
        NOTHING._replace(driver_state="no-driver", frameworks=("torch",)), TEN, Samples(), "not-asked/not-asked"
    ),
    "never started, not asked for": case(
        facts(request=NO_REQUEST), end(0)._replace(started=None), Samples(), "not-asked/not-asked"
    ),
    "canceled before the start": case(
        facts(), end(0, None, signal=15)._replace(started=None), Samples(), "unknown/interrupted-before-start"
    ),
    "refused for strangers": case(
        facts(device(strangers=(7000,)), request=REQUIRED), NEVER, Samples(), "not-available/stranger"
    ),
    "canceled while it waits for strangers to go": case(
        facts(device(strangers=(7000,)), request=LEASING._replace(require=True)),
        *(STOPPED, Samples(), "unknown/interrupted-before-start"),
    ),
    "failed while strangers were there, which refuses no run": case(
        facts(device(strangers=(7000,)), request=LEASING._replace(require=True)),
        *(NEVER, Samples(), "unknown/interrupted-before-start"),
    ),
    "canceled while the driver does not answer": case(
        facts(request=REQUIRED)._replace(devices=(), driver_state="timed-out"),
        *(STOPPED, Samples(), "unknown/interrupted-before-start"),
    ),
    "canceled where there is no GPU": case(facts()._replace(devices=()), STOPPED, Samples(), "not-available/no-gpu"),
    "canceled, and hidden": case(
        facts(visible="", request=REQUIRED), STOPPED, Samples(), "unknown/interrupted-before-start"
    ),
    "more than the machine has": case(
        facts(request=LEASING._replace(gpus=2, by="`--gpus 2`")), NEVER, Samples(), "not-available/too-few-gpus"
    ),
    "more memory than the machine has": case(
        facts(request=LEASING._replace(min_memory=80 * 10**9)), NEVER, Samples(), "not-available/too-few-gpus"
    ),
    "how many there are was never known": case(
        NOTHING._replace(request=LEASING), NEVER, Samples(), "unknown/interrupted-before-start"
    ),
    "a driver that never answered who leases": case(
        facts(request=LEASING)._replace(devices=(), driver_state="timed-out"),
        *(NEVER, Samples(), "unknown/nvml-stalled"),
    ),
    "refused for what hides the devices": case(
        facts(visible="", request=REQUIRED), NEVER, Samples(), "not-used/hidden"
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
