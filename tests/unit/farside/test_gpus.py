"""Whether there is a driver is seen without loading it; what a reader said becomes a report whatever it said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.gpu.device_header import lines, problems
from holdfast.farside.machine import gpus


@pytest.mark.parametrize(
    "sign",
    ["proc/driver/nvidia/version", "dev/nvidiactl", "usr/lib/wsl/lib/libnvidia-ml.so.1", "usr/lib64/libnvidia-ml.so.1"],
)
def test_a_driver_is_seen_by_each_of_its_signs(sign: str, tmp_path: Path) -> None:
    assert not gpus.is_present({}, str(tmp_path))
    (tmp_path / sign).parent.mkdir(parents=True)
    (tmp_path / sign).touch()
    assert gpus.is_present({}, str(tmp_path))


def test_the_loaders_folders_count_and_a_named_library_replaces_every_search(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    library = tmp_path / "lib" / gpus.LIBRARY
    library.touch()
    by_loader = {"LD_LIBRARY_PATH": f":{tmp_path}/none:{tmp_path}/lib"}
    assert gpus.is_present(by_loader, str(tmp_path))
    assert gpus.library(by_loader, str(tmp_path)) == str(library)
    assert not gpus.is_present({**by_loader, "HOLDFAST_NVML": str(tmp_path / "none")}, str(tmp_path))
    assert gpus.library({"HOLDFAST_NVML": "/x/y.so"}, str(tmp_path)) == "/x/y.so"


def reader(text: str, is_done: bool) -> Any:
    return SimpleNamespace(text=lambda: text, is_done=is_done)


def test_the_last_whole_line_of_a_reader_is_its_report() -> None:
    text = 'a warning\n{"state": "timed-out", "problem": "GPU 0 does not answer"}\n{"state": "ok"}\n{"state": "o'
    assert gpus.report_of(reader(text, True), 3.0) == {"state": "ok"}


def test_a_reader_that_is_late_a_reader_that_died_and_one_that_could_not_start_are_told_apart() -> None:
    partial = '{"state": "timed-out", "problem": "GPU 1 does not answer", "devices": []}\n'
    late = gpus.report_of(reader(partial, False), 3.0)
    assert (late["state"], late["problem"]) == ("timed-out", "GPU 1 does not answer within 3 s")
    assert gpus.report_of(reader("", False), 3.0)["state"] == "timed-out"
    died = gpus.report_of(reader(partial, True), 3.0)
    assert (died["state"], died["problem"]) == ("failed", "the driver ended the process that asked it")
    broken = gpus.report_of(reader("Traceback\nImportError: no ctypes\n", True), 3.0)
    assert (broken["state"], broken["problem"]) == ("failed", "ImportError: no ctypes")


def device(**changes: Any) -> dict[str, Any]:
    return {
        "index": 0,
        "state": "ok",
        "problem": "",
        "name": "Tesla K80",
        "capability": [3, 7],
        "memory_clock_max": 2505,
        "pci": "06c3:00:00.0",
        "memory_total": 11_996_954_624,
        "memory_free": 11_929_845_760,
        "instances": [],
        **changes,
    }


def report(*devices: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"state": "ok", "problem": "", "devices": list(devices), **changes}


def test_the_header_has_the_form_that_people_look_for() -> None:
    assert lines(report(device())).decode() == (
        "name: Tesla K80\n"
        "major: 3 minor: 7 memoryClockRate (GHz) 2.505\n"
        "pciBusID 06c3:00:00.0\n"
        "Total memory: 11.17GiB\n"
        "Free memory: 11.11GiB\n"
    )


def test_the_header_says_unknown_where_the_driver_says_nothing() -> None:
    silent = device(capability=None, memory_clock_max=None, pci=None, memory_total=None, memory_free=None, name=None)
    assert lines(report(silent)).decode() == (
        "name: unknown\n"
        "major: unknown minor: unknown memoryClockRate (GHz) unknown\n"
        "pciBusID unknown\n"
        "Total memory: unknown\n"
        "Free memory: unknown\n"
    )


def test_a_device_in_parts_is_shown_by_its_parts() -> None:
    parts = [{"name": f"A100 MIG {size}g", "memory_total": size << 30, "memory_free": size << 30} for size in (1, 2)]
    shown = lines(report(device(instances=parts))).decode()
    assert [line for line in shown.splitlines() if line.startswith(("name", "Total"))] == [
        "name: A100 MIG 1g",
        "Total memory: 1.00GiB",
        "name: A100 MIG 2g",
        "Total memory: 2.00GiB",
    ]


def test_what_does_not_work_becomes_a_sentence_and_no_lines() -> None:
    lost = report(device(state="lost", problem="GPU is lost"))
    assert lines(lost) == b""
    assert problems(lost) == ["GPU 0 (Tesla K80) does not work: GPU is lost."]
    assert problems(report(state="failed", problem="Driver Not Loaded")) == [
        "The GPUs could not be looked at: Driver Not Loaded."
    ]
    late = report(state="timed-out", problem="the driver does not answer within 3 s")
    assert problems(late) == ["The GPUs were not waited for: the driver does not answer within 3 s."]
    assert problems(report(state="no-driver")) == []


def test_the_header_can_be_that_of_some_devices_only() -> None:
    both = report(device(uuid="GPU-a", name="one"), device(uuid="GPU-b", name="other"))
    assert [line for line in lines(both, ["GPU-b"]).decode().splitlines() if line.startswith("name")] == ["name: other"]
