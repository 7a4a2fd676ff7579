"""What keeps a script from a GPU, as known before it starts."""

import pytest

from holdfast.farside.gpu.gpu_facts import NOTHING
from holdfast.farside.gpu.judge.checks import check, fatal_finding, proof
from kit.gpu_values import ASKED, CPU_BUILD, GIB, MISMATCH, NO_CODE, TOO_OLD, device, facts, leasing, uuid

BUSY = device(strangers=(7000, 7001))
WARNED = CPU_BUILD._replace(severity="warning")
GONE = facts()._replace(devices=())
ASKS_MEMORY = ASKED._replace(min_memory=8 * GIB)
TWO = ASKED._replace(gpus=2, by="`--gpus 2`")


@pytest.mark.parametrize(
    ("known", "reasons"),
    [
        (facts(), []),
        (NOTHING, []),
        (facts(device(state="lost"), device(1)), []),
        (facts(device(state="lost")), ["device-lost"]),
        (GONE, ["no-gpu"]),
        (GONE._replace(driver_state="no-driver"), ["no-driver"]),
        (GONE._replace(driver_state="failed", problem="Driver Not Loaded"), ["no-driver"]),
        (GONE._replace(driver_state="timed-out", problem="no answer"), ["nvml-stalled"]),
        (facts(container=""), ["container-without-gpus"]),
        (facts(container="hook"), []),
        (facts(visible=""), ["hidden"]),
        (facts(visible="0"), []),
        (facts(findings=(WARNED,)), []),
        (facts(findings=(CPU_BUILD,)), ["cpu-build"]),
        (facts(findings=(TOO_OLD, NO_CODE, MISMATCH)), ["driver-too-old", "no-code-for-gpu", "wrong-build"]),
        (facts(BUSY), ["stranger"]),
        (facts(BUSY, device(1)), []),
        (facts(BUSY, device(1), visible="0"), ["stranger"]),
        (facts(BUSY, device(1), leased=(uuid(0),)), ["stranger"]),
        (facts(BUSY, device(1), leased=(uuid(1),)), []),
        (facts(request=ASKS_MEMORY), []),
        (facts(device(memory_free=None), request=ASKS_MEMORY), []),
        (facts(device(memory_free=GIB), request=ASKS_MEMORY), ["out-of-gpu-memory"]),
        (facts(device(memory_free=GIB), device(1), request=ASKS_MEMORY), []),
        (facts(device(0), device(1), request=TWO), []),
        (facts(request=TWO), ["too-few-gpus"]),
        (facts(device(mig=True), request=TWO), []),
        (facts(device(memory_total=None), request=TWO._replace(gpus=1, min_memory=GIB)), ["too-few-gpus"]),
        (facts(device(memory_free=GIB), request=TWO._replace(gpus=1, min_memory=80 * GIB)), ["too-few-gpus"]),
        (facts(visible="", container="", findings=(CPU_BUILD,)), ["hidden", "container-without-gpus", "cpu-build"]),
    ],
)
def test_what_fails_is_named_in_order_and_would_end_a_run_that_must_have_a_gpu(known, reasons):
    found = check(known)
    assert [each.reason for each in found] == reasons
    assert all(each.is_fatal and each.sentence.endswith(".") and each.remedy for each in found)


LXML = MISMATCH._replace(kind="other-python", package="lxml")
ONNX = TOO_OLD._replace(package="onnxruntime-gpu")
CPU_XGBOOST = CPU_BUILD._replace(package="xgboost", severity="warning")


@pytest.mark.parametrize(
    ("found", "frameworks", "fatal"),
    [
        ((), ("torch",), None),
        ((LXML,), ("torch",), None),
        ((LXML,), (), None),
        ((TOO_OLD,), ("torch",), TOO_OLD),
        ((TOO_OLD,), (), TOO_OLD),
        ((ONNX,), ("onnxruntime", "torch"), None),
        ((LXML, ONNX, TOO_OLD), ("onnxruntime", "torch"), ONNX),
        ((TOO_OLD, CPU_XGBOOST), ("torch", "xgboost"), TOO_OLD),
        ((TOO_OLD, NO_CODE._replace(package="xgboost", severity="warning")), ("torch", "xgboost"), None),
        ((MISMATCH,), ("jax",), MISMATCH),
        ((CPU_BUILD._replace(package="tensorflow-cpu"),), ("tensorflow", "torch"), None),
        ((WARNED,), ("torch",), None),
    ],
)
def test_a_finding_is_fatal_where_it_leaves_no_framework_that_fits(found, frameworks, fatal):
    assert fatal_finding(found, frameworks) == fatal
    said = check(facts(findings=found, frameworks=frameworks))
    assert [each.sentence for each in said if each.is_fatal][:1] == ([] if fatal is None else [fatal.sentence])
    assert len(said) == sum(each.severity == "error" for each in found)


def test_a_device_that_can_only_be_named_ends_no_run():
    (found,) = check(facts(device(state="named", name="Apple M2", uuid=""))._replace(driver_state="no-driver"))
    assert (found.reason, found.is_fatal) == ("not-watched", False)
    assert found.sentence == "Apple M2 (GPU 0) can be named, but what it does cannot be watched."


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (
            facts(BUSY),
            "Other processes are on every GPU that the script can see: "
            "Tesla K80 (GPU-00000000) has processes 7000 and 7001.",
        ),
        (
            facts(device(memory_free=GIB // 2), request=ASKS_MEMORY),
            "No GPU has the 8.0 GiB of free memory that are asked for: Tesla K80 (GPU-00000000) has 512 MiB.",
        ),
        (
            GONE._replace(driver_state="failed", problem="Driver Not Loaded"),
            "The NVIDIA driver does not work: Driver Not Loaded.",
        ),
        (facts(device(state="lost")), "No GPU works: Tesla K80 (GPU-00000000) is lost."),
        (facts(device(state="lost", name="unknown", uuid="")), "No GPU works: GPU 0 is lost."),
        (facts(findings=(CPU_BUILD,)), CPU_BUILD.sentence),
        (
            facts(device(0), device(1, memory_total=GIB), request=TWO._replace(min_memory=10**9 + 2**30)),
            ": 1 GPU with 1.9 GiB of memory.",
        ),
        (
            facts(device(0), device(1, state="lost"), request=TWO),
            ": 1 GPU that works.",
        ),
    ],
)
def test_the_sentences_name_the_devices_the_processes_and_the_amounts(known, sentence):
    assert check(known)[0].sentence.endswith(sentence)


@pytest.mark.parametrize(
    ("known", "said", "reason"),
    [
        (facts(), (), None),
        (facts(visible="-1"), (), "hidden"),
        (facts(container=""), (), "container-without-gpus"),
        (facts(findings=(CPU_BUILD,), frameworks=("torch",)), (), "cpu-build"),
        (facts(findings=(CPU_BUILD,), frameworks=("torch", "cupy")), (), None),
        (facts(findings=(TOO_OLD,), frameworks=("torch",)), (), None),
        (facts(findings=(TOO_OLD,), frameworks=("torch",)), ("driver-too-old",), "driver-too-old"),
        (facts(findings=(TOO_OLD,), frameworks=("torch", "cupy")), ("driver-too-old",), None),
        (leasing(1), ("driver-too-old",), None),
        (GONE, (), None),
    ],
)
def test_a_proof_is_what_no_script_gets_around(known, said, reason):
    found = proof(known, said)
    assert (None if found is None else found.reason) == reason


@pytest.mark.parametrize("known", [facts(visible=""), facts(container="")])
def test_nothing_has_hidden_the_devices_from_a_script_that_was_on_one(known):
    assert proof(known) is not None and proof(known, was_touched=True) is None
    assert proof(known._replace(findings=(CPU_BUILD,)), was_touched=True).reason == "cpu-build"  # type: ignore[union-attr]
