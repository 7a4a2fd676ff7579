"""The simulated library keeps what later suites rely on, under NVIDIA's own module as it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

import kit.nvml
from kit.nvml import GIB, Device, Instance, Process, Simulated, build, occupying
from kit.waiting import wait_for

pytestmark = pytest.mark.kit

BEGIN = """
from pynvml import *
nvmlInit()
device = nvmlDeviceGetHandleByIndex(0)
def said(call, *arguments):
    try:
        return call(*arguments)
    except NVMLError as error:
        return str(error)
"""


def ask(gpus: Simulated, code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        env={**os.environ, **gpus.environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def line_of(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().strip()


def test_a_device_changes_while_a_process_looks_at_it(simulated):
    gpus = simulated(Device(temperature=40))
    code = BEGIN + "while True:\n    print(said(nvmlDeviceGetTemperature, device, 0), flush=True)\n    input()\n"
    looking = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **gpus.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )
    with looking:
        assert looking.stdin is not None
        seen = [line_of(looking.stdout)]
        for change in ({"temperature": 81}, {"lost": True}):
            for name, value in change.items():
                setattr(gpus.devices[0], name, value)
            gpus.write()
            looking.stdin.write("\n")
            seen.append(line_of(looking.stdout))
        looking.stdin.close()
    assert seen == ["40", "81", "GPU is lost"]


def test_processes_count_towards_memory_and_utilisation(simulated):
    gpus = simulated(
        Device(total=8 * GIB, reserved=0, utilization=10, processes=[Process(4, memory=GIB, utilization=30)] * 2)
    )
    assert ask(
        gpus,
        "memory = nvmlDeviceGetMemoryInfo(device)\n"
        "second = nvmlDeviceGetMemoryInfo(device, nvmlMemory_v2)\n"
        "print(memory.used >> 30, memory.free >> 30, second.used >> 30, second.reserved)\n"
        "print(nvmlDeviceGetUtilizationRates(device).gpu)\n"
        "print([row.smUtil for row in nvmlDeviceGetProcessUtilization(device, 0)])\n",
    ) == ["2 6 2 0", "70", "[30, 30]"]


def test_a_script_is_on_the_device_until_it_ends(simulated):
    gpus = simulated(Device())
    look = "print([(row.pid, row.usedGpuMemory) for row in nvmlDeviceGetComputeRunningProcesses(device)])"
    script = occupying(0, memory=GIB) + "print('there', flush=True)\ninput()\n"
    running = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, **gpus.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with running:
        assert running.stdin is not None
        assert line_of(running.stdout) == "there"
        assert ask(gpus, look) == [f"[({running.pid}, {GIB})]"]
        running.stdin.close()
    assert ask(gpus, look) == ["[]"]


def test_handles_by_index_uuid_and_bus_are_the_same_device(simulated):
    gpus = simulated(Device(), Device(uuid="GPU-second", pci="0000:0a:00.0"))
    assert ask(
        gpus,
        "for handle in (nvmlDeviceGetHandleByUUID('GPU-second'), nvmlDeviceGetHandleByPciBusId('00000000:0A:00.0')):\n"
        "    print(nvmlDeviceGetIndex(handle), nvmlDeviceGetMinorNumber(handle), nvmlDeviceGetUUID(handle))\n"
        "print(said(nvmlDeviceGetHandleByUUID, 'GPU-none'), said(nvmlDeviceGetHandleByIndex, 2))\n",
    ) == ["1 1 GPU-second", "1 1 GPU-second", "Not Found Invalid Argument"]


def test_mig_has_instances_with_their_processes_and_no_utilisation(simulated):
    parts = [Instance(), Instance()]
    gpus = simulated(Device(mig=True, instances=parts, processes=[Process(4, instance=1), Process(5, instance=0)]))
    assert ask(
        gpus,
        "print(nvmlDeviceGetMigMode(device), nvmlDeviceGetMaxMigDeviceCount(device))\n"
        "part = nvmlDeviceGetMigDeviceHandleByIndex(device, 1)\n"
        "print([row.pid for row in nvmlDeviceGetComputeRunningProcesses(part)])\n"
        "print(len(nvmlDeviceGetComputeRunningProcesses(device)), said(nvmlDeviceGetUtilizationRates, device))\n"
        "print(said(nvmlDeviceGetMigDeviceHandleByIndex, device, 2), nvmlDeviceGetAttributes(part).memorySizeMB)\n",
    ) == ["[1, 1] 7", "[4]", "2 Not Supported", "Not Found 5120"]


def test_a_function_can_fail_for_one_device_only_and_every_call_is_counted(simulated):
    gpus = simulated(Device(unsupported={"nvmlDeviceGetPowerUsage"}), Device())
    code = (
        "second = nvmlDeviceGetHandleByIndex(1)\n"
        "print(said(nvmlDeviceGetPowerUsage, device), said(nvmlDeviceGetPowerUsage, second))\n"
    )
    assert ask(gpus, code) == ["Not Supported 26000"]
    assert [function for _, function in gpus.calls()].count("nvmlDeviceGetPowerUsage") == 2


def test_a_stalled_call_never_returns_and_others_do(simulated):
    gpus = simulated(Device(stalls={"nvmlDeviceGetName"}))
    stalled = subprocess.Popen(
        [sys.executable, "-c", BEGIN + "nvmlDeviceGetUUID(device)\nnvmlDeviceGetName(device)\n"],
        env={**os.environ, **gpus.environment},
    )
    try:
        wait_for(lambda: "nvmlDeviceGetName" in [function for _, function in gpus.calls()])
        assert stalled.poll() is None
    finally:
        stalled.kill()
        stalled.wait()


def test_the_library_is_built_whole_by_many_at_once(tmp_path, monkeypatch, needs):
    needs("gcc")
    monkeypatch.setattr(kit.nvml, "_CACHE", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        built = set(pool.map(lambda _: build(), range(4)))
    (library,) = built
    assert [each.name for each in Path(library).parent.iterdir()] == ["libnvidia-ml.so.1"]
