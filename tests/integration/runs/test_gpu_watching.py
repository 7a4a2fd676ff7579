"""A run and the GPUs of its machine: what it requires, what it gets, when they end it, and what Holdfast says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit import amd
from kit.gpu_cases import PRELUDE
from kit.nvml import Device, Process, Simulated, occupying
from kit.waiting import wait_for

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


def test_a_machine_without_a_driver_has_no_word_about_gpus(bench):
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


def test_a_gpu_that_stays_idle_ends_a_run_that_asked_for_it(bench, gpus):
    bench.write("train.py", FOREVER)
    result = bench.submit("--stop-if-idle", "3s", "train.py", env=gpus.environment)
    assert result.code == 252
    record = bench.record()
    assert record["reason"] == "gpu-idle"
    assert verdict(bench, record["run_id"])["state"] == "not-used"


def test_where_there_is_no_gpu_none_is_idle_and_that_is_said(bench):
    bench.write("train.py", "print('hello')\n")
    done = bench.submit("--stop-if-idle", "1s", "train.py", env={"HOLDFAST_NVML": "/nowhere"})
    assert done.code == 0
    assert "--stop-if-idle" in done.err


def test_a_gpu_of_amd_is_watched_and_judged(bench, tmp_path):
    gpus = amd.Simulated(tmp_path / "amd", [amd.Device()])
    gate = "while not os.path.exists(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/go'):\n    time.sleep(0.01)\n"
    bench.write("train.py", PRELUDE + "print(os.getpid(), flush=True)\n" + gate + "looks(5)\n")
    environment = {"HOLDFAST_NVML": "/nowhere", **gpus.environment}
    run_id = bench.start("train.py", env=environment)
    wait_for(lambda: (bench.far(run_id) / "driver_log").read_bytes().endswith(b"\n"))
    gpus.devices[0].processes = [amd.Process(int((bench.far(run_id) / "driver_log").read_text()), 5 * amd.GIB)]
    gpus.devices[0].activity = 80
    gpus.write()
    (bench.far(run_id) / "go").touch()
    bench.run("logs", "-f", "-r", run_id)
    found = verdict(bench, run_id)
    assert (found["state"], found["devices"][0]["name"]) == ("used", "AMD Instinct MI210")


def test_a_gpu_that_works_lets_its_run_go_on(bench, gpus):
    bench.write("train.py", PRELUDE + occupying(0, utilization=40) + "looks(7)\n")
    result = bench.submit("--stop-if-idle", "6s", "train.py", env=gpus.environment)
    assert result.code == 0, result.err


def test_a_run_that_neither_prints_nor_computes_is_noticed_once(bench, gpus):
    bench.write("train.py", "print('up', flush=True)\n" + PRELUDE + "looks(9)\n")
    result = bench.submit("--gpus", "1", "--quiet-after", "2s", "train.py", env=gpus.environment)
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
    assert one.out.count("name: ") == 1, "the devices at the start are those that it has"
    every = bench.submit("--gpus", "all", "train.py", env=gpus.environment)
    assert sorted(every.out.splitlines()[-1].split(",")) == sorted(gpus.uuids())
    none = bench.submit("--gpus", "0", "train.py", env={**gpus.environment, "CUDA_VISIBLE_DEVICES": "0"})
    assert none.out == "\n"
    assert "GPU" not in none.err
    assert bench.record()["gpu"]["state"] == "not-asked"


def test_more_gpus_than_there_are_is_refused_at_once(bench, gpus):
    bench.write("train.py", "print('hello')\n")
    result = bench.submit("--gpus", "2", "train.py", env=gpus.environment)
    assert result.code == 252
    assert "This machine has 1 GPU, and `--gpus 2` asks for 2." in result.err
    record = bench.record()
    assert (record["reason"], record["start_time_utc"]) == ("gpu-required", None)


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


def test_a_run_that_must_have_a_gpu_starts_when_its_turn_has_come(bench, gpus):
    """The other run on the GPU, seen before the wait, does not matter any more."""
    bench.write("first.py", occupying(0) + FOREVER)
    bench.write("second.py", "print('mine')\n")
    first = bench.start("--gpus", "1", "first.py", env=gpus.environment)
    wait_for(lambda: b"up\n" in (bench.far(first) / "driver_log").read_bytes())
    second = bench.start("--gpus", "1", "--require-gpu", "second.py", env=gpus.environment)
    wait_for(lambda: any(each["e"] == "phase" and each["name"] == "gpus" for each in bench.journal(second)))
    assert bench.run("cancel", "-r", first).code == 0
    followed = bench.run("logs", "-f", "-r", second)
    assert followed.out.splitlines()[-1] == "mine", followed.err
    assert notes(bench, second) == []


def test_a_value_that_the_user_wrote_is_obeyed_and_warned_about(bench, gpus):
    bench.write("train.py", "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\n")
    bench.write(
        "aml_config/mine.runconfig",
        """\
        Target: local
        Framework: Python
        EnvironmentVariables:
          CUDA_VISIBLE_DEVICES: "7"
        """,
    )
    done = bench.submit("-c", "mine", "--gpus", "1", "train.py", env=gpus.environment)
    assert done.out.splitlines()[-1] == "7"
    assert any("CUDA_VISIBLE_DEVICES: 7" in each for each in notes(bench, bench.record()["run_id"]))


def test_a_run_that_waits_for_a_gpu_can_be_canceled(bench, gpus):
    gpus.devices[0].processes = [Process(pid=os.getpid())]
    gpus.write()
    bench.write("train.py", "print('hello')\n")
    run_id = bench.start("--gpus", "1", "train.py", env=gpus.environment)
    wait_for(lambda: any("is used by" in str(each.get("text")) for each in bench.journal(run_id)))
    assert bench.run("cancel", "-r", run_id).code == 0
    record = bench.record(run_id)
    assert (record["status"], record["gpu"]["reason"]) == ("Canceled", "interrupted-before-start")


def test_a_process_that_left_the_tree_and_holds_gpu_memory_is_ended(bench, gpus, started, tmp_path):
    """Like a process that another service started for the script: no descendant, but it has the run's mark. A process
    with only the run's id, as in a shell that a person opened for the run, is not touched."""
    bench.write(
        "train.py",
        PRELUDE + "print('up', flush=True)\nlooks(1)\nwhile not os.path.exists('outputs/go'):\n    time.sleep(0.05)\n",
    )
    run_id = bench.start("train.py", env=gpus.environment)
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    escaped = occupying(0) + "import time\nprint('on', flush=True)\ntime.sleep(600)\n"
    generation = json.loads((bench.far(run_id) / "plan.json").read_text())["generation"]
    marks = ({"HOLDFAST_GENERATION": generation}, {"HOLDFAST_RUN_ID": run_id})
    for mark in marks:
        environment = {**os.environ, **gpus.environment, **mark}
        started.append(subprocess.Popen([sys.executable, "-c", escaped], env=environment, stdout=subprocess.PIPE))
        assert started[-1].stdout is not None and started[-1].stdout.readline() == b"on\n"
    process, persons = started
    samples = bench.far(run_id) / "gpu.jsonl"
    wait_for(lambda: f"[{process.pid}]" in samples.read_text(), what="it was seen")
    (bench.there(run_id) / "outputs" / "go").touch()
    wait_for(lambda: process.poll() is not None, what="it was ended")
    bench.run("logs", "-f", "-r", run_id)
    swept = [each for event in bench.journal(run_id) if event["e"] == "swept" for each in event["processes"]]
    assert [each[0] for each in swept] == [process.pid]
    assert persons.poll() is None
    assert verdict(bench, run_id)["reason"] != "memory-left"


def test_a_run_whose_supervisor_was_killed_has_a_verdict_too(bench, gpus):
    bench.write("train.py", PRELUDE + occupying(0, utilization=50) + "looks(3)\n" + FOREVER)
    run_id = bench.start("--gpus", "1", "train.py", env=gpus.environment)
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    os.kill(bench.holder(run_id, 1), signal.SIGKILL)
    bench.run("logs", "-f", "-r", run_id)
    assert verdict(bench, run_id)["state"] == "used"
    assert bench.journal(run_id)[-1]["reason"] == "supervisor-died"


def test_after_a_cancel_nothing_of_the_run_is_on_the_gpu(bench, gpus):
    """Neither the script nor a loader that left its group and ignores SIGTERM."""
    loader = "os.setsid()\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + occupying(0) + FOREVER
    text = PRELUDE + "import signal\n" + occupying(0, utilization=50)
    text += "if os.fork() == 0:\n" + textwrap.indent(loader, "    ") + FOREVER
    bench.write("train.py", text)
    run_id = bench.start("--gpus", "1", "train.py", env=gpus.environment)

    def device() -> Any:
        shown = bench.run("computetarget", "gpus", "local", "-o", "json", env=gpus.environment)
        return json.loads(shown.out)["devices"][0]

    wait_for(lambda: len(device()["processes"]) == 2, what="both are on the GPU")
    assert [each["run"] for each in device()["processes"]] == [run_id, run_id]
    assert bench.run("cancel", "-r", run_id, "--grace", "1s", env=gpus.environment).code == 0
    assert device()["processes"] == []
    wait_for(lambda: device()["lease"] is None, what="the lease is over")
    assert (bench.record(run_id)["status"], verdict(bench, run_id)["reason"]) == ("Canceled", "ok")
