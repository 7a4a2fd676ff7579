"""The driver is detected without loading it; any output of the reader becomes a report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.machine import gpus
from holdfast.farside.machine.gpus import header, problems


@pytest.mark.parametrize(
    "sign",
    ["proc/driver/nvidia/version", "dev/nvidiactl", "usr/lib/wsl/lib/libnvidia-ml.so.1", "usr/lib64/libnvidia-ml.so.1"],
)
def test_a_driver_is_seen_by_each_of_its_signs(sign, tmp_path):
    assert not gpus.is_present({}, str(tmp_path))
    (tmp_path / sign).parent.mkdir(parents=True)
    (tmp_path / sign).touch()
    assert gpus.is_present({}, str(tmp_path))


def test_the_loaders_folders_count_and_a_named_library_replaces_every_search(tmp_path):
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


PARTIAL = '{"state": "timed-out", "problem": "GPU 1 does not answer", "devices": []}\n'


@pytest.mark.parametrize(
    ("text", "is_done", "state", "problem"),
    [
        (f'a warning\n{PARTIAL}{{"state": "ok"}}\n{{"state": "o', True, "ok", None),
        (PARTIAL, False, "timed-out", "GPU 1 does not answer within 3 s"),
        ("", False, "timed-out", "the driver does not answer within 3 s"),
        (PARTIAL, True, "failed", "the driver ended the process that asked it"),
        ("Traceback\nImportError: no ctypes\n", True, "failed", "ImportError: no ctypes"),
    ],
    ids=["its last whole line", "late", "silent", "died", "could not start"],
)
def test_a_reader_that_answered_is_late_died_or_could_not_start_is_told_apart(text, is_done, state, problem):
    found = gpus.report_of(reader(text, is_done), 3.0)
    assert (found["state"], found.get("problem")) == (state, problem)


def device(**changes: Any) -> dict[str, Any]:
    known = {"index": 0, "state": "ok", "problem": "", "name": "Tesla K80", "capability": [3, 7], "instances": []}
    memory = {"memory_clock_max": 2505, "memory_total": 11_996_954_624, "memory_free": 11_929_845_760}
    return {**known, **memory, "pci": "06c3:00:00.0", **changes}


def report(*devices: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"state": "ok", "problem": "", "devices": list(devices), **changes}


def test_the_header_has_the_form_that_people_look_for_and_says_unknown_where_the_driver_says_nothing():
    assert header(report(device())).decode() == (
        "name: Tesla K80\n"
        "major: 3 minor: 7 memoryClockRate (GHz) 2.505\n"
        "pciBusID 06c3:00:00.0\n"
        "Total memory: 11.17GiB\n"
        "Free memory: 11.11GiB\n"
    )
    silent = device(capability=None, memory_clock_max=None, pci=None, memory_total=None, memory_free=None, name=None)
    assert header(report(silent)).decode() == (
        "name: unknown\n"
        "major: unknown minor: unknown memoryClockRate (GHz) unknown\n"
        "pciBusID unknown\n"
        "Total memory: unknown\n"
        "Free memory: unknown\n"
    )


def test_a_device_in_parts_is_shown_by_its_parts_and_only_those_asked_for_are_shown():
    def seen(found: bytes) -> list[str]:
        return [line for line in found.decode().splitlines() if line.startswith(("name", "Total"))]

    memory = [{"memory_total": size << 30, "memory_free": size << 30} for size in (1, 2)]
    parts = [{"name": f"A100 MIG {at}g", "uuid": f"MIG-{at}", **each} for at, each in enumerate(memory, 1)]
    in_parts, whole = device(uuid="GPU-a", instances=parts), device(uuid="GPU-b", memory_total=3 << 30)
    of_parts = ["name: A100 MIG 1g", "Total memory: 1.00GiB", "name: A100 MIG 2g", "Total memory: 2.00GiB"]
    of_whole = ["name: Tesla K80", "Total memory: 3.00GiB"]
    assert seen(header(report(in_parts, whole))) == of_parts + of_whole
    assert seen(header(report(in_parts, whole), ["MIG-2", "GPU-b"])) == of_parts[2:] + of_whole


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        (report(device(state="lost", problem="GPU is lost")), ["GPU 0 (Tesla K80) does not work: GPU is lost."]),
        (
            report(state="failed", problem="Driver Not Loaded"),
            ["The GPUs could not be looked at: Driver Not Loaded."],
        ),
        (report(state="timed-out", problem="it is late"), ["The GPUs were not waited for: it is late."]),
        (report(state="no-driver"), []),
    ],
    ids=["lost", "failed", "late", "no driver"],
)
def test_what_does_not_work_becomes_a_sentence_and_no_lines(found, sentences):
    assert (header(found), problems(found)) == (b"", sentences)
