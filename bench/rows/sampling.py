"""What watching the GPUs of a run costs."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import children
import profiles
from children import Place
from measuring import FailedError, Figures
from results import Bar, Line, Row, Table
from session import Session

from kit.nvml import Device, Process, Simulated
from rows.supervision import look_at

NAME = "sampler-cost"
TITLE = "Cost of watching eight GPUs"
TOOLS: tuple[str, ...] = ("holdfast",)

DEVICES = 8
_PROGRAM = "look_often.py"
_READING, _READER = "read_samples.py", "the reader"
_HOW = """\
The process that watches a run's GPUs, with {devices} simulated GPUs and a process on each, for {seconds} s at one
look a second: the rate of a run's first ten minutes. CPU time is the scheduler's count after the first look,
divided by the time. The simulated driver reads its state from a file at every call, in the same process. A real
driver does other work, which this row does not measure, so the row also counts the calls: they are few, whatever
they cost. Reading is a separate process that reads the samples of a run of two weeks, in which every value changes
from look to look; drawing, as `history info` does, reads them once more."""


@dataclass(frozen=True)
class Watch:
    """`share` of a core; `calls` of the driver for each device and look; bytes."""

    share: float
    calls: float
    pss: int


def measure(session: Session) -> Row:
    seconds = 20 if not session.quick else 3
    place = session.place("sampler-cost")
    found = []
    for number in range(session.rounds(3)):
        session.say(f"{seconds} s of watching, round {number + 1}")
        found.append(_watch(place, place.root / f"watch-{number}", seconds))
    tables = (
        Table("CPU", "% of a core", 100.0, _line([each.share for each in found], Bar(1.0))),
        Table("Calls of the driver", "per device and look", 1.0, _line([each.calls for each in found], Bar(4.0))),
        Table("Memory, PSS", "MB", 1e-6, _line([each.pss for each in found], None)),
        *_reading(place, session.rounds(3)),
    )
    return Row(NAME, TITLE, _HOW.format(devices=DEVICES, seconds=seconds), tables)


def profile(session: Session) -> str:
    place = session.place("sampler-cost-profile")
    seen = tuple(_machine(place.root / "gpus").environment.items())
    return profiles.program_profile(replace(place, variables=seen), _PROGRAM, str(place.root), str(os.getpid()))


def _reading(place: Place, rounds: int) -> tuple[Table, ...]:
    argv: list[str | Path] = ["python", children.PROGRAMS / _READING, place.root / "two-weeks"]
    children.run(place, argv)  # writes the file
    found = [children.run(place, argv).out.split() for _ in range(rounds)]
    seconds, drawn, memory = ([float(each[place]) for each in found] for place in range(3))
    return (
        Table("Reading two weeks, CPU time", "s", 1.0, _line(seconds, Bar(2.0), _READER)),
        Table("Drawing two weeks, CPU time", "s", 1.0, _line(drawn, Bar(2.5), _READER)),
        Table("Reading two weeks, memory", "MB", 1e-6, _line(memory, Bar(150.0), _READER)),
    )


def _line(values: list[float] | list[int], bar: Bar | None, name: str = "the sampler") -> Line:
    return Line(name, Figures(tuple(float(each) for each in values)), bar)


def _machine(folder: Path) -> Simulated:
    return Simulated(folder, [Device(processes=[Process(os.getpid(), utilization=40)]) for _ in range(DEVICES)])


def _watch(place: Place, folder: Path, seconds: int) -> Watch:
    gpus = _machine(folder / "gpus")
    entry = children.run(
        place, ["python", "-c", "from holdfast.farside.system.layout import ENTRY; print(ENTRY)"], "main.py"
    )
    argv: list[str | Path] = [
        "python",
        "-I",
        "-S",
        entry.out.strip(),
        "sample",
        str(folder),
        str(os.getpid()),
        "18d2721bfe8f",
    ]
    lines = folder / "gpu.jsonl"
    with subprocess.Popen(argv, env={**place.environment(), **gpus.environment}) as sampler:
        try:
            first = _wait_for_looks(lines, 2, sampler)
            begin, calls, look = time.monotonic(), len(gpus.calls()), look_at(sampler.pid)
            last = _wait_for_looks(lines, first + seconds, sampler)
            elapsed, after = time.monotonic() - begin, look_at(sampler.pid)
            made = len(gpus.calls()) - calls
        finally:
            sampler.kill()
    return Watch((after.cpu - look.cpu) / elapsed, made / (last - first) / DEVICES, after.pss)


def _wait_for_looks(lines: Path, count: int, sampler: subprocess.Popen[bytes]) -> int:
    """The number of samples, once there are that many."""
    deadline = time.monotonic() + children.PATIENCE
    while sampler.poll() is None and time.monotonic() < deadline:
        found = lines.read_bytes().count(b'"d":') if lines.exists() else 0
        if found >= count:
            return found
        time.sleep(0.05)
    raise FailedError("the sampler does not look at the GPUs")
