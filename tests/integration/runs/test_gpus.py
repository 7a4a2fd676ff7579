"""The devices at the start of a run's output; a sick driver neither ends nor delays a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.hosts.host import Local
from kit.nvml import DRIVER_NOT_LOADED, Device, Simulated
from kit.waiting import wait_for

from .conftest import is_gone

K80 = """\
name: Tesla K80
major: 3 minor: 7 memoryClockRate (GHz) 2.505
pciBusID 06c3:00:00.0
Total memory: 11.17GiB
Free memory: 11.11GiB
"""


@pytest.fixture
def gpus(tmp_path: Path, needs: Callable[..., None]) -> Simulated:
    needs("gcc")
    return Simulated(tmp_path / "gpus", [Device(pci="06c3:00:00.0")])


def notes(bench, run_id):
    return [each["text"] for each in bench.journal(run_id) if each["e"] == "note"]


def test_the_devices_stand_before_the_scripts_first_byte(bench, gpus):
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("train.py", env=gpus.environment)
    assert (result.code, result.out) == (0, K80 + "hello\n"), result.err
    record = bench.record()
    assert (bench.far(record["run_id"]) / "driver_log").read_text() == K80 + "hello\n"
    assert notes(bench, record["run_id"]) == []
    assert not [each for each in bench.journal(record["run_id"]) if each["e"] == "swept"]


def test_a_script_that_prints_nothing_has_the_devices_all_the_same(bench, gpus):
    bench.write("train.py", "raise SystemExit(3)\n")
    result = bench.submit("train.py", env=gpus.environment)
    assert (result.code, result.out) == (3, K80)


def test_without_a_driver_nothing_is_printed(bench):
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("train.py", env={"HOLDFAST_NVML": "/nowhere"})
    assert (result.code, result.out) == (0, "hello\n")


def test_a_driver_that_hangs_delays_the_run_by_its_time_and_becomes_a_note(bench, gpus):
    gpus.stalls.add("nvmlDeviceGetCount_v2")
    gpus.write()
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("train.py", env=gpus.environment)
    assert (result.code, result.out) == (0, "hello\n")
    record = bench.record()
    (note,) = notes(bench, record["run_id"])
    assert note.endswith(" 3 s.")
    events = {each["e"]: each["t"] for each in bench.journal(record["run_id"])}
    assert 2.5 < events["started"] - events["created"] < 30
    assert "swept" not in events
    wait_for(lambda: all(is_gone(pid) for pid, _ in gpus.calls()), what="the process that asked the driver is gone")


def test_a_device_that_hangs_leaves_the_lines_of_those_before_it(bench, gpus):
    gpus.devices.append(Device(stalls={"*"}))
    gpus.write()
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("train.py", env=gpus.environment)
    assert result.out == K80 + "hello\n"
    assert "GPU 1 does not answer within 3 s" in notes(bench, bench.record()["run_id"])[0]


def test_a_lost_device_and_a_driver_that_is_not_loaded_become_notes(bench, gpus):
    gpus.devices.append(Device(lost=True))
    gpus.write()
    bench.write("train.py", "print('hello')\n")
    assert bench.submit("train.py", env=gpus.environment).out == K80 + "hello\n"
    assert notes(bench, bench.record()["run_id"]) == ["GPU 1 (unknown) does not work: GPU is lost."]
    gpus.init = DRIVER_NOT_LOADED
    gpus.write()
    assert bench.submit("train.py", env=gpus.environment).out == "hello\n"
    (note,) = notes(bench, bench.record()["run_id"])
    assert note.endswith(": Driver Not Loaded.")


def test_cancel_works_while_the_driver_is_waited_for(bench, gpus):
    gpus.stalls.add("nvmlInit_v2")
    gpus.write()
    bench.write("train.py", "print('hello')\n")
    with Local(bench.home, os.environ).connect() as connection:
        connection.request("hello")  # connect early: the driver has only 3 s
        run_id = bench.start("train.py", env=gpus.environment)
        asked = {"project": bench.event(run_id, "created")["project"], "run": run_id, "grace": None}
        assert connection.request("cancel", asked) == {"state": "asked"}
    assert bench.event(run_id, "ended")["reason"] == "canceled"
    names = [each["e"] for each in bench.journal(run_id)]
    assert "started" not in names
    assert "swept" not in names


def test_the_shipped_module_is_not_on_the_scripts_path(bench, gpus):
    bench.write(
        "train.py",
        """
        import importlib.util, os, sys
        print([each for each in sys.path if "nvml" in each], os.environ.get("PYTHONPATH", "").count("nvml"))
        """,
    )
    result = bench.submit("train.py", env=gpus.environment)
    assert result.out == K80 + "[] 0\n"
