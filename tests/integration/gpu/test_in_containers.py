"""GPUs of runs in containers: the container has only the leased GPUs, and gets the same verdict and notes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.docker.benches import ContainerBench
from kit.docker.gpus import occupying_inside
from kit.gpu_cases import PRELUDE, watching
from kit.nvml import GIB, Device, Process, Simulated

TARGETS = ("docker",)
SEES = """\
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
count = ctypes.c_uint()
assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
for number in range(count.value):
    device, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    assert nvml.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetUUID(device, uuid, 96) == 0
    print("has", uuid.value.decode())
"""


@pytest.fixture
def gpus(container_bench: ContainerBench, docker_gpus_of: Callable[..., Simulated], monkeypatch) -> Simulated:
    made = docker_gpus_of(container_bench.home.parent, Device(processes=[Process(1, GIB)]), Device())
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def test_a_container_has_no_other_gpu_than_the_leased_one(container_bench, gpus, target):
    container_bench.write("t.py", SEES)
    one = container_bench.submit("--gpus", "1", "t.py")
    assert one.code == 0, one.err
    shown = [line for line in one.out.splitlines() if line.startswith("has ")]
    assert shown == [f"has {gpus.uuids()[1]}"], "a process computes on the first"
    gpus.devices[0].processes = []
    gpus.write()
    both = container_bench.submit("--gpus", "all", "t.py")
    assert {f"has {each}" for each in gpus.uuids()} <= set(both.out.splitlines())


def test_the_verdict_is_the_last_word_there_too(container_bench, gpus, target):
    container_bench.target("volumes:", watching(container_bench.home))
    container_bench.write("t.py", PRELUDE + occupying_inside(memory=3 * GIB, utilization=74) + "looks(4)\n")
    done = container_bench.submit("--gpus", "1", "t.py")
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("GPU used: Tesla K80 (GPU-") and "3.0 GiB peak" in last, done.err


def test_a_required_gpu_that_the_container_does_not_get_ends_the_run_before_its_script(container_bench, gpus, target):
    container_bench.write("t.py", "print('ran')\n")
    done = container_bench.submit("--require-gpu", "t.py")
    assert (done.code, done.out) == (252, ""), done.err
    assert container_bench.record()["reason"] == "gpu-required"


def test_a_gpu_that_stays_idle_ends_a_run_there_too(container_bench, gpus, target):
    container_bench.write("t.py", "import time\nwhile True:\n    time.sleep(0.1)\n")
    done = container_bench.submit("--gpus", "1", "--stop-if-idle", "3s", "t.py")
    assert done.code == 252, done.err
    record = container_bench.record()
    assert (record["reason"], record["gpu"]["state"]) == ("gpu-idle", "not-used")
