"""`holdfast check`: this machine on a page, and as data."""

from __future__ import annotations

import json
import os

import pytest

from kit.nvml import GIB, LIB_RM_VERSION_MISMATCH, Device, Instance, Process


@pytest.fixture
def bare(tmp_path):
    """An environment without traces of this machine's Docker and GPUs."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "mounts").write_text("1 0 0:1 / / rw - ext4 /dev/sda1 rw\n")
    return {
        "PATH": str(tmp_path / "bin"),
        "HOLDFAST_NVML": "/nowhere",
        "HOLDFAST_MOUNTS": str(tmp_path / "mounts"),
        "TMPDIR": "/tmp",
    }


def test_it_shows_the_machine_and_says_that_there_is_no_driver(holdfast, bare):
    result = holdfast("check", "-o", "table", env=bare)
    assert result.code == 0, result.err
    titles = [line[:9].strip() for line in result.out.splitlines() if line[:1].strip()]
    assert titles[:6] == ["Machine", "System", "Cores", "Memory", "Folder", "Temporary"]
    assert f"Machine    {os.uname().nodename}, as " in result.out
    assert "Docker     none\n" in result.out
    assert "Driver     none from NVIDIA\n" in result.out
    assert "There is no NVIDIA driver: runs use the CPU." in result.out


def test_it_shows_each_device_with_its_parts_and_processes(holdfast, bare, simulated):
    gpus = simulated(
        Device(uuid="GPU-one", total=12 * GIB, reserved=0, processes=[Process(4242, memory=3 * GIB)]),
        Device(
            name="A100", uuid="GPU-two", capability=(8, 0), mig=True, instances=[Instance(uuid="MIG-x", reserved=0)]
        ),
        Device(lost=True),
    )
    result = holdfast("check", "-o", "table", env={**bare, **gpus.environment})
    assert result.code == 0, result.err
    shown = result.out[result.out.index("Driver") :].splitlines()
    assert shown[:12] == [
        "Driver     NVIDIA 535.104.05, CUDA up to 12.2",
        "GPU 0      Tesla K80, 9.00 GiB of 12.00 GiB free, compute capability 3.7",
        "           GPU-one, PCI 0000:06:00.0",
        "           SM up to 875 MHz, memory up to 2505 MHz (324 and 324 MHz now)",
        "           process 4242: 3.00 GiB (compute)",
        "GPU 1      A100, 11.11 GiB of 11.17 GiB free, compute capability 8.0",
        "           GPU-two, PCI 0000:07:00.0",
        "           SM up to 875 MHz, memory up to 2505 MHz (324 and 324 MHz now)",
        "           A100 MIG 1g.5gb, 5.00 GiB of 5.00 GiB free, MIG-x",
        "GPU 2      unknown: lost, GPU is lost",
        "Finding 1  GPU 2 does not work: GPU is lost.",
        "           Restart the machine, or try: sudo nvidia-smi --gpu-reset -i 2",
    ]


def test_as_data_it_has_everything_and_can_be_queried(holdfast, bare, simulated):
    gpus = simulated(Device(uuid="GPU-one"), Device(uuid="GPU-two"))
    environment = {**bare, **gpus.environment}
    data = json.loads(holdfast("check", "-o", "json", env=environment).out)
    assert data["gpus"]["state"] == "ok"
    assert data["folder"]["file_system"] == "ext4"
    assert data["findings"] == []
    result = holdfast("check", "--query", "gpus.devices[].uuid", "-o", "tsv", env=environment)
    assert result.out == "GPU-one\nGPU-two\n"


def test_a_sick_driver_is_a_finding_with_its_remedy(holdfast, bare, simulated):
    gpus = simulated(Device(), init=LIB_RM_VERSION_MISMATCH)
    data = json.loads(holdfast("check", "-o", "json", env={**bare, **gpus.environment}).out)
    (finding,) = data["findings"]
    assert "version mismatch" in finding["message"]
    assert finding["remedy"] == "The driver was updated, and the old one is still loaded: restart the machine."
    assert finding["stops_runs"] is False


def test_a_folder_that_cannot_be_used_is_said_in_words(holdfast, bare, tmp_path):
    (tmp_path / "file").write_text("")
    result = holdfast("check", env={**bare, "HOLDFAST_HOME": str(tmp_path / "file" / "home")})
    assert result.code != 0
    assert "cannot be used" in result.err
    assert "Traceback" not in result.err
