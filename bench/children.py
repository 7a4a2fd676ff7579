"""The measured processes: each contender has its own home, project folder and environment.

The environment is made from nothing, so that no setting of this machine favours one of them: `PATH` starts with the
contender's own programs (no version manager's shim in between), `VIRTUAL_ENV` and all `PYTHON*` variables are unset,
and programs are told not to use the network.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from measuring import FailedError
from peers import Tool

PROGRAMS = Path(__file__).resolve().parent / "programs"

PATIENCE = 300.0
"""Seconds after which a child that has not ended counts as failed: a hang is a result, and is reported."""

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_NO_TRAFFIC = {
    "DO_NOT_TRACK": "1",
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


@dataclass(frozen=True)
class Place:
    """Where one contender works. `root` is its own folder; `variables` are set beside the usual ones."""

    root: Path
    tool: Tool
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.tool.programs}:{_SYSTEM_PATH}",
            "HOME": str(self.home),
            "HOLDFAST_HOME": str(self.home / ".holdfast"),
            "TMPDIR": str(self.root / "tmp"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "USER": "bench",
            **_NO_TRAFFIC,
            **dict(self.variables),
        }


def make_place(scratch: Path, name: str, tool: Tool) -> Place:
    place = Place(scratch / name, tool)
    for folder in (place.project, place.home, place.root / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    return place


@dataclass(frozen=True)
class Done:
    seconds: float
    out: str


def run(place: Place, argv: Sequence[str | Path], expect: str = "") -> Done:
    """Run to the end in the project folder. Raises FailedError unless it succeeds in time and prints `expect`."""
    if place.tool.problem:
        raise FailedError(place.tool.problem)
    words = [str(word) for word in argv]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        code = _wait_for(place, words, out, err)
        seconds = time.perf_counter() - begin
        out.seek(0)
        err.seek(0)
        text, complaint = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if code != 0 or expect not in text:
        raise FailedError(_failure(Path(words[0]).name, code, complaint or text))
    return Done(seconds, text)


def seconds(place: Place, argv: Sequence[str | Path], expect: str = "") -> float:
    return run(place, argv, expect).seconds


def figure(place: Place, program: str, *arguments: str) -> float:
    """Run one of `bench/programs` with the contender's Python; the last word that it prints is the figure."""
    return float(run(place, ["python", PROGRAMS / program, *arguments]).out.split()[-1])


class Worker:
    """One of `bench/programs` that stays: it works once for each line that it is sent, and prints the seconds.

    So library calls are measured in a warm process, and two libraries in turns.
    """

    def __init__(self, place: Place, program: str, *arguments: str) -> None:
        self._name = program
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._process = subprocess.Popen(
            ["python", str(PROGRAMS / program), *arguments],
            cwd=place.project,
            env=place.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, work: str) -> float:
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(work + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has died: the empty answer below says so
        answer = self._process.stdout.readline().split()
        if not answer:
            self._errors.seek(0)
            complaint = self._errors.read().decode(errors="replace")
            raise FailedError(_failure(self._name, self._process.wait(), complaint))
        return float(answer[-1])

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()


def _wait_for(place: Place, words: Sequence[str], out: IO[bytes], err: IO[bytes]) -> int:
    """Waits without a time-out: with one, Python checks only every 50 ms whether the child has ended."""
    process = subprocess.Popen(
        words, cwd=place.project, env=place.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err
    )
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(PATIENCE, give_up)
    timer.start()
    try:
        code = process.wait()
    finally:
        timer.cancel()
    if is_late.is_set():
        raise FailedError(f"`{Path(words[0]).name}` had not ended after {PATIENCE:.0f} s")
    return code


def _failure(name: str, code: int, complaint: str) -> str:
    found = [line.strip() for line in complaint.splitlines() if line.strip()]
    return f"`{name}` failed with exit code {code}: {found[-1][:200] if found else 'no message'}"
