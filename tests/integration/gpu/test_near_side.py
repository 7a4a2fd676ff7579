"""What the laptop shows of a run and its GPUs: the verdict last, the fetched samples, who uses which GPU meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from kit.boxes import Box
from kit.gpu_cases import PRELUDE
from kit.nvml import GIB, Device, Process, Simulated, occupying
from kit.sshd import Client, Options
from kit.terminals import on_a_terminal
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


@pytest.fixture
def waiting_run(bench: Any, gpus: Simulated) -> Iterator[str]:
    """A run that waits for a GPU that another holds until the end of the test."""
    bench.write("train.py", "import time\ntime.sleep(600)\n")
    holder = bench.start("--gpus", "1", "train.py")
    bench.event(holder, "leased")
    waiter = bench.start("--gpus", "1", "train.py")
    wait_for(lambda: b"waiting for a GPU" in (bench.far(waiter) / "journal.jsonl").read_bytes(), 60)
    yield waiter
    for each in (waiter, holder):
        assert bench.run("cancel", "-r", each, "--grace", "0").code == 0


def test_who_follows_a_run_that_waits_for_a_gpu_reads_what_for(bench, waiting_run):
    for how in ("for the first time", "after its machine was asked"):
        words = ("logs", "-f", "-r", waiting_run)
        with bench.popen(*words) as followed, on_a_terminal(words, bench.root) as seen:
            os.set_blocking(followed.stderr.fileno(), False)
            said = bytearray()

            def is_whole(said: bytearray = said, stream: IO[bytes] = followed.stderr) -> bool:
                said += stream.read() or b""
                return b"\n" in said

            try:
                wait_for(is_whole, what=f"something is said {how}")
            finally:
                followed.kill()
            assert said.startswith(b"Waiting for a GPU: GPU 0 is held by the run"), how
            seen.until(lambda shown: re.search(rb"waiting for a GPU: GPU 0 .*\(\d+ s\)", shown) is not None, 60)
        assert bench.run("status", "-r", waiting_run).code == 0


def test_the_line_of_those_who_wait_names_their_runs(bench, waiting_run):
    page = bench.run("computetarget", "gpus", "local").out
    assert re.search(rf"1st in line  run {waiting_run} of \S+, for 1 GPU, since [\d.]+s\n", page), page
    queue = json.loads(bench.run("computetarget", "gpus", "local", "-o", "json").out)["queue"]
    assert [(each["run"], each["gpus"]) for each in queue] == [(waiting_run, 1)]
    listed = bench.run("history", "list", "-o", "table").out
    assert "  waiting for" in listed and "is held by" not in listed


def test_what_was_typed_is_in_the_record_and_compared(bench, gpus):
    bench.write("train.py", "")
    ids = []
    for words in (["--gpus", "1"], []):
        assert bench.run("submit", *words, "train.py").code == 0
        ids.append(bench.run("history", "last", "--query", "run_id", "-o", "tsv").out.strip())
    assert bench.record(ids[0])["configuration"]["run_configuration"]["gpu"]["gpus"] == 1
    assert "run_configuration.gpu.gpus: 1" in bench.run("history", "info", "-r", ids[0], "-o", "table").out
    compared = json.loads(bench.run("history", "compare", *ids, "-o", "json").out)
    assert {"name": "run_configuration.gpu.gpus", "first": "1", "second": None} in compared["configuration"]


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
    folder.chmod(0o777)  # the account on the box writes what its processes do
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
    assert f"your run {run}" in page and "process 1 of root: " in page
    assert holdfast("cancel", "-r", run, "--grace", "0", env=there.environment).code == 0


WATCH = ("computetarget", "gpus", "local", "--watch")
BEGIN, END = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


def looks(count: int) -> Callable[[bytes], bool]:
    return lambda shown: shown.count(b"\x1b[J") >= count


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_a_terminal_is_given_back_however_the_watching_ends(tmp_path, gpus, number, code):
    with on_a_terminal(WATCH, tmp_path) as seen:
        seen.until(looks(2))
        seen.process.send_signal(number)
        shown = seen.until(lambda shown: END in shown and (number != signal.SIGINT or shown.endswith(b"free\r\n")))
        assert seen.process.wait(30) == code
    assert (shown.count(BEGIN), shown.count(END)) == (1, 1)
    after = shown.rpartition(END)[2]
    assert (b"GPU 0   Tesla K80, 0 % busy" in after) is (number == signal.SIGINT), "what was seen last stays"
    assert len([None for _, function in gpus.calls() if function == "nvmlDeviceGetCount_v2"]) >= 2


def test_a_terminal_is_given_back_while_the_watching_is_stopped(tmp_path, gpus):
    with on_a_terminal(WATCH, tmp_path) as seen:
        seen.until(looks(1))
        os.killpg(seen.process.pid, signal.SIGTSTP)
        wait_for(lambda: state(seen.process.pid) == "T", what="it is stopped")
        assert seen.until(lambda shown: END in shown).endswith(END)
        os.killpg(seen.process.pid, signal.SIGCONT)
        again = seen.until(lambda shown: looks(2)(shown.partition(END)[2])).partition(END)[2]
        assert again.startswith(BEGIN)
        assert b"Tesla K80" in again
        os.killpg(seen.process.pid, signal.SIGTSTP)
        wait_for(lambda: state(seen.process.pid) == "T", what="it can be stopped again")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
