"""The process that watches GPUs: what holds for every source, and on every Python that a host may have."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.farside.gpu.samples import Row, Samples, Tick, read
from holdfast.farside.system.layout import ENTRY, SAMPLER_NAME, SAMPLES
from integration.interpreters import FOUND
from kit import amd, nvml
from kit.waiting import wait_for

GENERATION = "18d2721bfe8f"
NO_PROCESS = 4_194_305
"""One more than the highest possible process id."""
STARTER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
print(child.pid, flush=True)
sys.stdin.read()
os._exit(0)
"""
Machine = nvml.Simulated | amd.Simulated


class Watched:
    """A sampler at work, below a process that started it as a supervisor does."""

    def __init__(self, folder: Path, gpus: Machine, python: Path | str = sys.executable) -> None:
        self.file, self.environment = folder / SAMPLES, {**os.environ, **gpus.environment}
        argv = [sys.executable, "-c", STARTER, str(python), "-I", "-S", ENTRY, "sample", str(folder)]
        self.parent = subprocess.Popen(
            [*argv, str(os.getpid()), GENERATION], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.parent.stdout is not None
        self.pid = int(self.parent.stdout.readline())

    def samples(self) -> Samples:
        return read(self.file.read_bytes()) if self.file.exists() else Samples()

    def ticks(self, count: int) -> list[Tick]:
        def found() -> list[Tick] | None:
            ticks = list(self.samples().ticks)
            return ticks if len(ticks) >= count else None

        return wait_for(found, what="ticks")

    def look_now(self) -> Row:
        """The first device, in a look that begins after the request."""
        self.ticks(1)
        asked = time.time()
        os.kill(self.pid, signal.SIGUSR1)
        wait_for(lambda: self.samples().ticks[-1].time > asked, what="the look that was asked for")
        return self.samples().ticks[-1].rows[0]

    @property
    def is_alive(self) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        return False

    def end(self) -> None:
        self.parent.kill()
        self.parent.communicate()
        wait_for(lambda: not self.is_alive, what="the sampler ends with its parent")


@pytest.fixture(params=["nvml", "amdsmi"])
def machine(request, tmp_path: Path, needs: Callable[..., None]) -> Callable[..., Machine]:
    """`machine(pid, …)` has one busy GPU with these processes, each with a GiB."""

    def make(*pids: int) -> Machine:
        if request.param == "amdsmi":
            return amd.Simulated(tmp_path / "gpus", [amd.Device(processes=[amd.Process(pid, amd.GIB) for pid in pids])])
        needs("gcc")
        processes = [nvml.Process(pid, nvml.GIB, utilization=20) for pid in pids]
        return nvml.Simulated(tmp_path / "gpus", [nvml.Device(processes=processes)])

    return make


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    """`watch(gpus)`: a sampler, which ends with the test. The test is the guardian of its run."""
    begun = []

    def begin(gpus: Machine, **options: Path) -> Watched:
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        begun.append(Watched(folder, gpus, **options))
        return begun[-1]

    yield begin
    for each in begun:
        each.end()


@pytest.mark.parametrize("python", FOUND.values(), ids=FOUND.keys())
def test_every_python_watches_and_tells_whose_processes_are_there(machine, watch, python: Path) -> None:
    watched = watch(machine(os.getpid(), 1, NO_PROCESS), python=python)
    first = watched.ticks(1)[0].rows[0]
    samples = watched.samples()
    assert (samples.source in ("nvml", "amdsmi"), samples.problem, samples.skipped) == (True, "", 0)
    assert [device.number for device in samples.devices] == [0] and samples.devices[0].uuid
    assert (first.own, first.others, first.unmatched, first.own_memory) == ((os.getpid(),), (1,), 1, 1 << 30)
    assert first.own_utilisation in (20, None)


def test_a_look_that_is_asked_for_comes_at_once_and_after_the_question(machine, watch) -> None:
    gpus = machine(os.getpid())
    watched = watch(gpus)
    watched.ticks(1)
    gpus.devices[0].processes = []
    gpus.write()
    assert watched.look_now().own == ()


def test_what_carries_the_runs_mark_is_the_runs(machine, watch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, "true"],
        env={**os.environ, "HOLDFAST_GENERATION": GENERATION},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as marked:
        assert watch(machine(marked.pid)).look_now().own == (marked.pid,)
        assert marked.stdin is not None
        marked.stdin.close()


def test_it_has_its_name_and_dies_with_its_parent(machine, watch) -> None:
    watched = watch(machine())
    watched.ticks(1)
    assert Path(f"/proc/{watched.pid}/comm").read_text().strip() == SAMPLER_NAME
    watched.parent.kill()
    wait_for(lambda: not watched.is_alive, what="the sampler ends with its parent")


def test_memory_that_a_dead_process_left_is_still_the_runs(machine, watch) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER, "true"], stdin=subprocess.PIPE, stdout=-3) as child:
        watched = watch(machine(child.pid))
        assert watched.look_now().own == (child.pid,)
        child.kill()
    assert watched.look_now().own == (child.pid,)


def test_a_library_that_hangs_is_not_asked_before_the_first_line_is_written(tmp_path: Path, needs, watch) -> None:
    needs("gcc")
    watched = watch(nvml.Simulated(tmp_path / "gpus", [nvml.Device()], stalls=["nvmlInit_v2"]))
    wait_for(lambda: watched.samples().began)
    wait_for((tmp_path / "gpus" / "nvml-state.calls").exists, what="the library is asked")
    assert watched.samples() == Samples(began=watched.samples().began, source="nvml")


def test_a_driver_that_cannot_be_used_is_said_and_ends_it(tmp_path: Path, needs, watch) -> None:
    needs("gcc")
    watched = watch(nvml.Simulated(tmp_path / "gpus", [nvml.Device()], init=nvml.DRIVER_NOT_LOADED))
    wait_for(lambda: watched.samples().problem == "Driver Not Loaded")
    wait_for(lambda: not watched.is_alive)
