"""A run and the GPUs of its machine: what it must have, what it gets, when it is ended for them, and what is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.nvml import Device, Process, Simulated, occupying
from kit.waiting import wait_for

TICKS = """
import os, time
def ticks(count):
    path = os.path.join(os.environ["HOLDFAST_RUN_DIRECTORY"], "gpu.jsonl")
    while not os.path.exists(path) or open(path).read().count('"d":') < count:
        time.sleep(0.05)
"""
FOREVER = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.1)\n"


@pytest.fixture
def gpus(tmp_path: Path, needs: Callable[..., None]) -> Simulated:
    needs("gcc")
    return Simulated(tmp_path / "gpus", [Device()])


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are ended after the test."""
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for each in found:
        each.kill()
        each.communicate()


def verdict(bench: Any, run_id: str) -> Any:
    (found,) = [each for each in bench.journal(run_id) if each["e"] == "gpu"]
    return found


def notes(bench: Any, run_id: str) -> list[str]:
    return [each["text"] for each in bench.journal(run_id) if each["e"] == "note"]


def test_on_a_machine_without_a_driver_nobody_is_told_of_gpus(bench):
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("train.py", env={"HOLDFAST_NVML": "/nowhere"})
    assert "GPU" not in result.out + result.err
    record = bench.record()
    assert record["gpu"]["state"] == "not-asked"
    assert not (bench.far(record["run_id"]) / "gpu.jsonl").exists()


def test_a_run_that_must_have_a_gpu_does_not_start_without_one(bench):
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("--require-gpu", "train.py", env={"HOLDFAST_NVML": "/nowhere"})
    assert (result.code, result.out) == (252, "")
    record = bench.record()
    assert (record["status"], record["reason"]) == ("Failed", "gpu-required")
    assert "started" not in [each["e"] for each in bench.journal(record["run_id"])]
    assert verdict(bench, record["run_id"])["state"] == "not-available"


def test_the_verdict_is_the_last_word_of_a_run_that_used_the_gpu(bench, gpus):
    bench.write("train.py", TICKS + occupying(0, memory=3 << 30, utilization=74) + "ticks(4)\n")
    result = bench.submit("train.py", env=gpus.environment)
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("GPU used: Tesla K80 (GPU-"), result.err
    assert "3.0 GiB peak" in last and "first use after" in last
    assert bench.record()["gpu"]["state"] == "used"


def test_a_gpu_that_stays_idle_ends_a_run_that_asked_for_it(bench, gpus):
    bench.write("train.py", FOREVER)
    result = bench.submit("--stop-if-idle", "3s", "train.py", env=gpus.environment)
    assert result.code == 252
    record = bench.record()
    assert record["reason"] == "gpu-idle"
    assert verdict(bench, record["run_id"])["state"] == "not-used"


def test_a_gpu_that_works_lets_its_run_go_on(bench, gpus):
    bench.write("train.py", TICKS + occupying(0, utilization=40) + "ticks(7)\n")
    result = bench.submit("--stop-if-idle", "2s", "train.py", env=gpus.environment)
    assert result.code == 0, result.err


def test_a_run_that_neither_prints_nor_computes_is_noticed_once(bench, gpus):
    bench.write("train.py", "print('up', flush=True)\n" + TICKS + "ticks(9)\n")
    result = bench.submit("--quiet-after", "2s", "train.py", env=gpus.environment)
    run_id = bench.record()["run_id"]
    said = [each for each in notes(bench, run_id) if each.startswith("No output and no GPU work for 2 seconds.")]
    assert len(said) == 1
    assert f"holdfast experiment stacks -r {run_id}" in said[0]
    assert said[0] in result.err


def test_the_script_sees_what_was_leased_and_nothing_else(bench, tmp_path):
    gpus = Simulated(tmp_path / "gpus", [Device(), Device(), Device()])
    bench.write("train.py", "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\n")
    one = bench.submit("--gpus", "1", "train.py", env=gpus.environment)
    assert one.out.splitlines()[-1] in gpus.uuids()
    every = bench.submit("--gpus", "all", "train.py", env=gpus.environment)
    assert sorted(every.out.splitlines()[-1].split(",")) == sorted(gpus.uuids())
    none = bench.submit("--gpus", "0", "train.py", env={**gpus.environment, "CUDA_VISIBLE_DEVICES": "0"})
    assert none.out == "\n"


def test_more_gpus_than_there_are_is_refused_at_once(bench, gpus):
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("--gpus", "2", "train.py", env=gpus.environment)
    assert result.code == 252
    assert "1" in result.err and "--gpus" in result.err
    assert bench.record()["reason"] == "gpu-required"


def test_a_second_run_waits_for_the_gpu_and_says_so(bench, gpus):
    bench.write("first.py", FOREVER)
    bench.write("second.py", "print('mine')\n")
    first = bench.start("--gpus", "1", "first.py", env=gpus.environment)
    wait_for(lambda: b"up\n" in (bench.far(first) / "driver_log").read_bytes())
    second = bench.start("--gpus", "1", "second.py", env=gpus.environment)
    texts = lambda: [each["text"] for each in bench.journal(second) if each["e"] == "phase"]  # noqa: E731
    wait_for(lambda: any(each.startswith("waiting for a GPU") for each in texts()), what="it says that it waits")
    assert bench.run("cancel", "-r", first).code == 0
    assert bench.run("logs", "-f", "-r", second).out.splitlines()[-1] == "mine"


def test_a_run_that_waits_for_a_gpu_can_be_canceled(bench, gpus):
    gpus.devices[0].processes = [Process(pid=os.getpid())]
    gpus.write()
    bench.write("train.py", "print('hello')\n")
    run_id = bench.start("--gpus", "1", "train.py", env=gpus.environment)
    wait_for(lambda: any("is used by" in str(each.get("text")) for each in bench.journal(run_id)))
    assert bench.run("cancel", "-r", run_id).code == 0
    assert bench.record(run_id)["status"] == "Canceled"


def test_a_process_that_left_the_tree_and_holds_gpu_memory_is_ended(bench, gpus, started, tmp_path):
    """As one that another service started on the script's behalf: no descendant, but it carries the run's id."""
    bench.write(
        "train.py",
        TICKS + "print('up', flush=True)\nticks(1)\nwhile not os.path.exists('outputs/go'):\n    time.sleep(0.05)\n",
    )
    run_id = bench.start("train.py", env=gpus.environment)
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    escaped = occupying(0) + "import time\nprint('on', flush=True)\ntime.sleep(600)\n"
    environment = {**os.environ, **gpus.environment, "HOLDFAST_RUN_ID": run_id}
    process = subprocess.Popen([sys.executable, "-c", escaped], env=environment, stdout=subprocess.PIPE)
    started.append(process)
    assert process.stdout is not None and process.stdout.readline() == b"on\n"
    samples = bench.far(run_id) / "gpu.jsonl"
    wait_for(lambda: f"[{process.pid}]" in samples.read_text(), what="it was seen")
    (bench.far(run_id) / "work" / "outputs" / "go").touch()
    wait_for(lambda: process.poll() is not None, what="it was ended")
    bench.run("logs", "-f", "-r", run_id)
    swept = [each for event in bench.journal(run_id) if event["e"] == "swept" for each in event["processes"]]
    assert process.pid in [each[0] for each in swept]
    assert verdict(bench, run_id)["reason"] != "memory-left"


def test_a_run_whose_supervisor_was_killed_has_a_verdict_too(bench, gpus):
    bench.write("train.py", TICKS + occupying(0, utilization=50) + "ticks(3)\n" + FOREVER)
    run_id = bench.start("--gpus", "1", "train.py", env=gpus.environment)
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    os.kill(bench.holder(run_id, 1), signal.SIGKILL)
    bench.run("logs", "-f", "-r", run_id)
    assert verdict(bench, run_id)["state"] == "used"
    assert bench.journal(run_id)[-1]["reason"] == "supervisor-died"
