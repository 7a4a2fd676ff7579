"""Runs that lease simulated GPUs, without a script or a folder: quick enough for hundreds of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from holdfast.hosts.shipment import far_side, install
from kit.accounts import Account
from kit.nvml import Simulated
from kit.waiting import wait_for

_PROGRAM = Path(__file__).with_name("lease_program.py")
_PATIENCE = 60.0
"""Seconds for the driver's answer. The driver works, but the machine may be busy."""


@dataclass(frozen=True)
class Had:
    """One run of a storm, in seconds since the machine started. `seen` and `waited`: when it was first known to wait,
    and when it last waited; None if it did not have to."""

    run: str
    uid: int
    gpus: int | str
    asked: float
    seen: float | None
    waited: float | None
    begin: float
    end: float
    uuids: tuple[str, ...]


def storm(folder: Path, gpus: Simulated, accounts: Sequence[Account], processes: int, runs: int) -> list[Had]:
    """All users at once: each has this many processes, with this many runs one after another."""
    place = Path(tempfile.mkdtemp(dir=folder))
    place.chmod(0o777)
    given = {"uids": [each.uid for each in accounts], "processes": processes, "runs": runs, "folder": str(place)}
    argv = _argv("storm", {**given, "patience": _PATIENCE})
    done = subprocess.run(argv, env=_environment(gpus), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and json.loads(done.stdout) == {"failed": 0}, done.stderr
    rows = [json.loads(line) for file in place.iterdir() for line in file.read_text().splitlines()]
    shutil.rmtree(place)
    return [Had(**{**row, "uuids": tuple(row["uuids"])}) for row in rows]


def shared(found: Sequence[Had]) -> list[tuple[str, str, str]]:
    """(GPU, run, run) of those that had one at the same time."""
    pairs = []
    for uuid in {each for had in found for each in had.uuids}:
        holders = sorted((each for each in found if uuid in each.uuids), key=lambda each: each.begin)
        for first, second in pairwise(holders):
            if second.begin < first.end:
                pairs.append((uuid, first.run, second.run))
    return pairs


def overtaken(found: Sequence[Had]) -> list[tuple[str, str]]:
    """(run, later run) if the later one arrived when the other was known to wait, and the other still waited after the
    later one had its GPUs. All could use the same devices."""
    return [
        (each.run, other.run)
        for each in found
        for other in found
        if each.seen is not None and each.waited is not None and each.seen < other.asked and other.begin < each.waited
    ]


class Holding:
    """A run with its guardian and its supervisor, which holds GPUs."""

    def __init__(self, process: subprocess.Popen[str], about: dict[str, Any]) -> None:
        self._process = process
        self.guardian, self.supervisor = int(about["guardian"]), int(about["supervisor"])
        self.child: int | None = about["child"]
        self.uuids = tuple(about["uuids"])

    def kill_supervisor(self) -> None:
        os.kill(self.supervisor, signal.SIGKILL)
        wait_for(lambda: _state(self.supervisor) in ("Z", ""), what="the supervisor is dead")

    def kill_guardian(self) -> None:
        os.kill(self.guardian, signal.SIGKILL)
        self._process.wait()

    def kill(self) -> float:
        """Kill both, as a crash does. Returns the moment, in seconds since the machine started."""
        moment = time.clock_gettime(time.CLOCK_BOOTTIME)
        for pid in (self.supervisor, self.guardian):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        return moment

    def end(self) -> None:
        self.kill()
        if self.child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def holding(simulated: Simulated, *, python: str = sys.executable, **given: Any) -> Iterator[Holding]:
    """`holding(simulated, gpus=2, run="one", uid=4242, child=True)`."""
    about = {"uid": os.getuid(), "gpus": 1, "run": "held", "patience": _PATIENCE, **given}
    process = _start("hold", simulated, about, python)
    held = Holding(process, _line(process.stdout))
    try:
        yield held
    finally:
        held.end()


class Waiting:
    """A run that waits for GPUs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.told: list[str] = []

    def hears(self) -> str:
        """The next thing that it says it waits for."""
        self.told.append(str(_line(self._process.stdout)["told"]))
        return self.told[-1]

    def has(self) -> tuple[float, tuple[str, ...]]:
        """When it had its GPUs, and which."""
        while True:
            line = _line(self._process.stdout)
            if "had" in line:
                return float(line["had"]), tuple(line["uuids"])
            self.told.append(str(line["told"]))

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        wait_for(lambda: _state(self._process.pid) == "T", what="it is stopped")

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def waiting(simulated: Simulated, *, python: str = sys.executable, **given: Any) -> Iterator[Waiting]:
    """`waiting(simulated, gpus=2, run="two")`; it holds what it gets until the end."""
    found = Waiting(_start("wait", simulated, {"gpus": 1, "run": "waiting", "patience": _PATIENCE, **given}, python))
    try:
        yield found
    finally:
        found.end()


def make_the_kernel_collect() -> None:
    """Sockets that hold only each other make the kernel collect descriptors in flight that cannot be received."""
    for _ in range(20):
        first, second = socket.socketpair()
        with first, second:
            for each in (first, second):
                socket.send_fds(each, [b"\0"], [first.fileno(), second.fileno()])


def _start(what: str, gpus: Simulated, given: dict[str, Any], python: str) -> subprocess.Popen[str]:
    argv = _argv(what, given, python)
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, env=_environment(gpus), stdin=pipe, stdout=pipe, text=True)


def _argv(what: str, given: dict[str, Any], python: str = sys.executable) -> list[str]:
    return [python, str(_PROGRAM), what, json.dumps(given)]


def _environment(gpus: Simulated) -> dict[str, str]:
    """With the far side as on a host, beside the state of the GPUs."""
    shipped = install(far_side(gpus.state.parent / "home"), gpus.state.parent / "home")
    return {**os.environ, **gpus.environment, "PYTHONPATH": str(shipped), "PYTHONDONTWRITEBYTECODE": "1"}


def _line(stream: IO[str] | None) -> dict[str, Any]:
    assert stream is not None
    text = stream.readline()
    assert text, "it ended without a word"
    found: dict[str, Any] = json.loads(text)
    return found


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
