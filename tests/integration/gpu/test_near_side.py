"""What the laptop shows of a run and its GPUs: the verdict last, the samples at home, who uses what meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.boxes import Box
from kit.gpu_cases import PRELUDE
from kit.nvml import GIB, Device, Process, Simulated, occupying
from kit.sshd import Client, Options
from kit.waiting import wait_for

COMPUTES = f"{PRELUDE}{occupying(memory=GIB, utilization=60)}\nlooks(4)\n"


@pytest.fixture
def gpus(tmp_path: Path, needs: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Simulated:
    needs("gcc")
    made = Simulated(tmp_path / "gpus", [Device()])
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def test_who_follows_later_reads_the_same_verdict_last_and_has_the_samples_at_home(bench, gpus):
    bench.write("train.py", COMPUTES)
    run = bench.start("--gpus", "1", "train.py")
    followed = bench.run("logs", "-f", "-r", run, timeout=120)
    assert followed.code == 0, followed.err
    verdict = bench.record(run)["gpu"]
    assert verdict["state"] == "used", verdict
    assert followed.err.splitlines()[-1] == verdict["sentence"]
    assert (bench.near(run) / "gpu.jsonl").read_bytes() == (bench.far(run) / "gpu.jsonl").read_bytes() != b""
    page = bench.run("history", "info", "-r", run, "-o", "table").out
    assert "GPU 0 busy " in page and "peak 60 %" in page
    found = bench.run("history", "list", "--query", "[?gpu.devices[0].is_leased].run_id", "-o", "tsv")
    assert found.out.split() == [run]
    listed = bench.run("history", "list", "-o", "table").out
    assert "used " in listed.splitlines()[2]


def test_a_runconfig_asks_as_the_command_line_does_and_252_is_for_want_of_a_gpu(bench, gpus):
    bench.write("train.py", "open('outputs/ran', 'w')\n")
    bench.write("aml_config/two.runconfig", "Target: local\nFramework: Python\nGpus: 2\nRequireGpu: true\n")
    result = bench.submit("-c", "two", "train.py")
    assert result.code == 252, result.err
    assert "`Gpus: 2` in two.runconfig" in result.err
    record = bench.record()
    assert (record["reason"], record["start_time_utc"]) == ("gpu-required", None)
    assert "ran" not in str(record["attachments"])


def test_gpus_that_are_hidden_are_hidden_and_nothing_is_said_of_them(bench, gpus):
    bench.write("train.py", "import os\nprint('sees', repr(os.environ.get('CUDA_VISIBLE_DEVICES')))\n")
    result = bench.submit("--gpus", "0", "train.py")
    assert result.code == 0, result.err
    assert "sees ''" in result.out
    assert bench.record()["gpu"]["state"] == "not-asked"
    assert "GPU" not in result.err


def test_a_machine_over_ssh_says_who_uses_its_gpus(
    box: Callable[..., Box],
    client: Client,
    tmp_path: Path,
    needs: Callable[..., None],
    holdfast: Callable[..., Any],
) -> None:
    needs("gcc")
    folder = client.folder.parent / "gpus"
    gpus = Simulated(folder, [Device(processes=[Process(1, GIB)]), Device()])
    folder.chmod(0o777)  # the account over there writes what its processes do
    there = box("gpu1", options=Options(environment=dict(gpus.environment)))
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "gpu1.compute").write_text(there.compute)
    (tmp_path / "aml_config" / "gpu1.runconfig").write_text("Target: gpu1\nFramework: Python\n")
    (tmp_path / "train.py").write_text(f"{occupying(1, GIB)}\nimport time\ntime.sleep(600)\n")
    started = holdfast("submit", "-a", "-c", "gpu1", "--gpus", "1", "train.py", env=there.environment)
    assert started.code == 0, started.err
    run = started.out.strip()

    def seen() -> Any:
        shown = holdfast("computetarget", "gpus", "gpu1", "-o", "json", env=there.environment)
        assert shown.code == 0, shown.err
        devices = json.loads(shown.out)["devices"]
        return devices if devices[1]["processes"] else None

    first, second = wait_for(seen, 60)
    assert [(each["pid"], each["whose"]) for each in first["processes"]] == [(1, "stranger")]
    assert first["lease"] is None
    assert second["lease"]["run"] == run
    assert [(each["whose"], each["run"]) for each in second["processes"]] == [("mine", run)]
    page = holdfast("computetarget", "gpus", "gpu1", env=there.environment).out
    assert f"your run {run}" in page and "not a run of Holdfast's" in page
    assert holdfast("cancel", "-r", run, "--grace", "0", env=there.environment).code == 0


def test_a_terminal_is_given_back_when_the_watching_ends(tmp_path: Path, gpus: Simulated) -> None:
    leader, follower = os.openpty()
    words = [sys.executable, "-m", "holdfast", "computetarget", "gpus", "local", "--watch"]
    watching = subprocess.Popen(words, cwd=tmp_path, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    while shown.count(b"\x1b[J") < 2:  # two looks
        shown += os.read(leader, 1 << 16)
    watching.send_signal(signal.SIGINT)
    assert watching.wait(30) == 0
    while b"\x1b[?1049l" not in shown or not shown.endswith(b"free\r\n"):
        shown += os.read(leader, 1 << 16)
    os.close(leader)
    assert shown.count(b"\x1b[?1049h") == shown.count(b"\x1b[?1049l") == 1
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")
    assert b"GPU 0   Tesla K80, 0 % busy" in shown.rpartition(b"\x1b[?1049l")[2]
    assert len([None for _, function in gpus.calls() if function == "nvmlDeviceGetCount_v2"]) >= 2
