"""The facts of a machine as the far side finds them, with healthy and sick GPUs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.codec import decode
from holdfast.hosts.machine_report import DeviceState, GpuProcess, Gpus, GpuState
from holdfast.hosts.shipment import far_side, install
from integration.interpreters import FOUND
from kit.nvml import DRIVER_NOT_LOADED, GIB, LIB_RM_VERSION_MISMATCH, UNKNOWN, Device, Instance, Process
from kit.waiting import wait_for


def test_several_devices_are_told_with_all_that_they_have(simulated, facts_of):
    gpus = simulated(
        Device(pci="06c3:00:00.0"),
        Device(name="NVIDIA A100-SXM4-40GB", uuid="GPU-a", capability=(8, 0), total=40 * GIB, reserved=0),
    )
    found = facts_of(gpus).gpus
    assert (found.state, found.driver, found.cuda) == (GpuState.OK, "535.104.05", "12.2")
    first, second = found.devices
    assert (first.index, first.name, first.capability, first.pci) == (0, "Tesla K80", (3, 7), "06c3:00:00.0")
    assert (first.sm_clock, first.sm_clock_max, first.memory_clock, first.memory_clock_max) == (324, 875, 324, 2505)
    assert (first.memory_total, first.memory_used) == (11_996_954_624, 64 << 20)
    assert (second.name, second.uuid, second.memory_free) == ("NVIDIA A100-SXM4-40GB", "GPU-a", 40 * GIB)
    assert (first.mig, first.processes) == (None, ())


def test_processes_of_strangers_are_told_with_their_memory_as_far_as_it_is_known(simulated, facts_of):
    processes = [Process(4242, memory=3 * GIB), Process(77, memory=None), Process(9, memory=GIB, kind="graphics")]
    (device,) = facts_of(simulated(Device(total=10 * GIB, reserved=0, processes=processes))).gpus.devices
    assert device.processes == (
        GpuProcess(4242, 3 * GIB, "compute"),
        GpuProcess(77, None, "compute"),
        GpuProcess(9, GIB, "graphics"),
    )
    assert (device.memory_used, device.memory_free) == (4 * GIB, 6 * GIB)


def test_what_a_device_does_not_support_is_not_known_and_the_rest_is(simulated, facts_of):
    silent = {"nvmlDeviceGetClockInfo", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetCudaComputeCapability"}
    lists = {f"nvmlDeviceGet{kind}RunningProcesses_v{number}" for kind in ("Compute", "Graphics") for number in (2, 3)}
    (device,) = facts_of(simulated(Device(unsupported=silent | lists))).gpus.devices
    assert device.state is DeviceState.OK
    assert (device.problem, device.name) == ("", "Tesla K80")
    assert (device.memory_total, device.memory_free, device.capability, device.sm_clock) == (None, None, None, None)
    assert device.sm_clock_max == 875
    assert device.processes is None


def test_an_older_driver_lists_processes_by_the_call_that_it_has(simulated, facts_of):
    missing = {"nvmlDeviceGetComputeRunningProcesses_v3": 13}
    (device,) = facts_of(simulated(Device(errors=missing, processes=[Process(5, memory=GIB)]))).gpus.devices
    assert device.processes == (GpuProcess(5, GIB, "compute"),)


def test_a_call_that_fails_for_another_reason_leaves_its_words(simulated, facts_of):
    (device,) = facts_of(simulated(Device(errors={"nvmlDeviceGetPciInfo_v3": UNKNOWN}))).gpus.devices
    assert (device.state, device.pci, device.problem) == (DeviceState.OK, None, "Unknown Error")


def test_a_lost_device_is_a_state_of_that_device(simulated, facts_of):
    found = facts_of(simulated(Device(), Device(lost=True), Device())).gpus
    assert found.state is GpuState.OK
    assert [each.state for each in found.devices] == [DeviceState.OK, DeviceState.LOST, DeviceState.OK]
    assert found.devices[1].problem == "GPU is lost"


def test_of_a_device_that_is_lost_while_it_is_asked_what_was_learned_stays(simulated, facts_of):
    (device,) = facts_of(simulated(Device(errors={"nvmlDeviceGetMemoryInfo": 15}))).gpus.devices
    assert (device.state, device.name, device.memory_total) == (DeviceState.LOST, "Tesla K80", None)


def test_mig_instances_are_told_with_their_own_memory(simulated, facts_of):
    gpus = simulated(
        Device(
            name="A100",
            mig=True,
            instances=[Instance(reserved=0), Instance(total=10 * GIB, slices=2, reserved=0)],
            processes=[Process(4, memory=GIB, instance=1)],
        ),
        Device(mig=False),
    )
    parted, whole = facts_of(gpus).gpus.devices
    assert (parted.mig, whole.mig, whole.instances) == (True, False, ())
    assert [(each.name, each.memory_total, each.memory_used) for each in parted.instances] == [
        ("A100 MIG 1g.5gb", 5 * GIB, 0),
        ("A100 MIG 2g.10gb", 10 * GIB, GIB),
    ]
    assert len({each.uuid for each in parted.instances}) == 2


@pytest.mark.parametrize(
    ("code", "words"), [(DRIVER_NOT_LOADED, "Driver Not Loaded"), (LIB_RM_VERSION_MISMATCH, "version mismatch")]
)
def test_a_driver_that_cannot_start_is_told_in_its_words(simulated, facts_of, code, words):
    found = facts_of(simulated(Device(), init=code)).gpus
    assert (found.state, found.code, found.devices) == (GpuState.FAILED, code, ())
    assert words in found.problem


def test_a_driver_that_hangs_is_given_up_in_time_and_its_process_is_gone(simulated, facts_of):
    gpus = simulated(Device(), Device(stalls={"nvmlDeviceGetMemoryInfo"}))
    began = time.monotonic()
    found = facts_of(gpus, timeout=5.0).gpus  # in which GPU 0 has answered, also on a busy machine
    assert time.monotonic() - began < 30
    assert (found.state, found.problem) == (GpuState.TIMED_OUT, "GPU 1 does not answer within 5 s")
    assert [each.name for each in found.devices] == ["Tesla K80"]
    (pid,) = {pid for pid, _ in gpus.calls()}
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), what="the process that asked is gone")


def test_a_driver_that_hangs_at_once_is_given_up_too(simulated, facts_of):
    found = facts_of(simulated(Device(), stalls=["nvmlInit_v2"]), timeout=1.0).gpus
    assert found.state == GpuState.TIMED_OUT
    assert found.problem.endswith(" 1 s")


def test_a_library_that_is_none_is_a_failure_with_the_loaders_words(tmp_path, facts_of):
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    found = facts_of(HOLDFAST_NVML=str(tmp_path / "libnvidia-ml.so.1")).gpus
    assert found.state is GpuState.FAILED
    assert "libnvidia-ml.so.1" in found.problem


def test_without_a_driver_no_process_is_started(facts_of, isolated):
    shutil.rmtree(isolated / ".holdfast" / "farside")  # with its bytecode: a module that is read leaves some
    assert facts_of().gpus.state is GpuState.NO_DRIVER
    assert not list(isolated.glob(".holdfast/farside/*/holdfast/farside/machine/__pycache__/nvml.*"))


def test_the_library_is_found_by_the_loaders_path_too(simulated, facts_of):
    gpus = simulated(Device())
    everything = {**os.environ, **gpus.environment}
    by_loader = {name: value for name, value in everything.items() if name != "HOLDFAST_NVML"}
    home = Path(os.environ["HOLDFAST_HOME"])
    root = install(far_side(home), home)
    argv = [sys.executable, "-I", "-S", str(root / "holdfast" / "farside" / "main.py"), "gpus"]
    done = subprocess.run(argv, env=by_loader, capture_output=True, text=True, timeout=60)
    assert '"state": "ok"' in done.stdout.splitlines()[-1], done.stdout + done.stderr


@pytest.mark.parametrize("python", FOUND.values(), ids=FOUND.keys())
def test_every_python_reads_them(simulated, python, tmp_path):
    gpus = simulated(Device(), Device(mig=True, instances=[Instance()]), Device(lost=True))
    root = install(far_side(tmp_path), tmp_path / "home")
    argv = [str(python), "-W", "error", "-I", "-S", str(root / "holdfast" / "farside" / "main.py"), "gpus"]
    done = subprocess.run(argv, env={**gpus.environment, "PATH": "/bin"}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    found = decode(Gpus, json.loads(done.stdout.splitlines()[-1]))
    assert [each.state for each in found.devices] == [DeviceState.OK, DeviceState.OK, DeviceState.LOST]
    assert len(found.devices[1].instances) == 1


def test_the_machine_itself_is_told(facts_of, isolated):
    facts = facts_of(PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    assert facts.host == os.uname().nodename
    assert facts.architecture == os.uname().machine
    assert facts.cores.usable == len(os.sched_getaffinity(0))
    assert facts.memory.total > facts.memory.available > 0
    assert facts.folder.path == str(isolated / ".holdfast")
    assert facts.folder.total >= facts.folder.free > 0
    assert abs(facts.time - time.time()) < 60
    assert facts.python.version == "{}.{}.{}".format(*sys.version_info)
    assert facts.python.version in [each.version for each in facts.pythons]


def test_a_network_home_and_a_temporary_folder_without_programs_are_seen(facts_of, tmp_path, isolated):
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"1 0 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / {isolated} rw - nfs4 server:/home rw\n"
        f"3 1 0:3 / {tmp_path} rw,noexec - tmpfs tmpfs rw\n"
    )
    facts = facts_of(HOLDFAST_MOUNTS=str(mounts), TMPDIR=str(tmp_path))
    assert (facts.folder.file_system, facts.folder.network, facts.folder.source) == ("nfs4", True, "server:/home")
    assert (facts.temporary.path, facts.temporary.noexec) == (str(tmp_path), True)


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("script", "timeout", "version", "problem"),
    [
        ("echo 24.0.7", 30.0, "24.0.7", ""),
        ("echo; echo 'permission denied while trying' >&2; exit 1", 30.0, None, "permission denied while trying"),
        ("sleep 60", 1.0, None, "no answer within 1 s"),
    ],
)
def test_docker_is_asked_for_its_server_and_given_up_in_time(facts_of, tmp_path, script, timeout, version, problem):
    program(tmp_path / "bin", "docker", script)
    docker = facts_of(timeout=timeout, PATH=f"{tmp_path}/bin:{os.environ['PATH']}").docker
    assert (docker.path, docker.version, docker.problem) == (str(tmp_path / "bin" / "docker"), version, problem)


def test_the_quota_of_the_folders_file_system_is_read(facts_of, tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text("1 0 0:1 / / rw - ext4 /dev/sda1 rw\n")
    program(tmp_path / "bin", "quota", "echo '  /dev/sda1 100 200 300 0 5 6 7 0'")
    quota = facts_of(PATH=f"{tmp_path}/bin:{os.environ['PATH']}", HOLDFAST_MOUNTS=str(mounts)).folder.quota
    assert (quota.used, quota.limit, quota.files, quota.files_limit) == (100 * 1024, 300 * 1024, 5, 7)
