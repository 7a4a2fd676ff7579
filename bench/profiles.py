"""Where the time of a missed bar goes: imports, functions, and the moments of one run."""

from __future__ import annotations

import io
import json
import pstats
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import children
from children import PROGRAMS, Place

SHOWN = 25

_IMPORT_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)")


@dataclass(frozen=True)
class Import:
    """`own` and `whole` are microseconds: of the module alone, and with what it imports first."""

    name: str
    own: int
    whole: int
    depth: int


def import_times(place: Place, command: Sequence[str]) -> str:
    """`-X importtime` of a `holdfast` command: the modules that cost most by themselves."""
    done = subprocess.run(
        ["python", "-X", "importtime", "-m", "holdfast", *command],
        cwd=place.project,
        env=place.environment(),
        capture_output=True,
        text=True,
    )
    found = parse_imports(done.stderr)
    total = sum(each.own for each in found)
    lines = [f"Imports of `holdfast {' '.join(command)}`: {len(found)} modules, {total / 1000:.1f} ms"]
    for each in sorted(found, key=lambda each: -each.own)[:SHOWN]:
        lines.append(f"  {each.own / 1000:7.1f} ms  {each.whole / 1000:7.1f} with its own  {each.name}")
    return "\n".join(lines)


def parse_imports(text: str) -> list[Import]:
    return [
        Import(name, int(own), int(whole), len(indent) // 2) for own, whole, indent, name in _IMPORT_LINE.findall(text)
    ]


def cpu_profile(place: Place, command: Sequence[str]) -> str:
    """cProfile of a `holdfast` command's own process."""
    return _profile(place, ["-m", "holdfast", *command], f"Functions of `holdfast {' '.join(command)}`")


def program_profile(place: Place, program: str, *arguments: str) -> str:
    """cProfile of one of `bench/programs`."""
    return _profile(place, [str(PROGRAMS / program), *arguments], f"Functions of bench/programs/{program}")


def run_timeline(place: Place, command: Sequence[str]) -> str:
    """The journal's events of the run that `command` submits, in milliseconds since the command began."""
    begin = time.time()
    took = children.run(place, ["holdfast", *command]).seconds
    newest = max((place.project / ".holdfast" / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    moments = [("submission.json", json.loads((newest / "submission.json").read_text())["created"])]
    for line in (newest / "journal.jsonl").read_text().splitlines():
        event = json.loads(line)
        moments.append((" ".join([event["e"], event.get("name", "")]).strip(), event["t"]))
    lines = [f"Moments of `holdfast {' '.join(command)}`"]
    lines += [f"  {(moment - begin) * 1000:7.1f} ms  {name}" for name, moment in moments]
    return "\n".join([*lines, f"  {took * 1000:7.1f} ms  the command has ended"])


def _profile(place: Place, words: Sequence[str], title: str) -> str:
    path = place.root / "profile.out"
    children.run(place, ["python", "-m", "cProfile", "-o", path, *words])
    return f"{title}, by time with what they call, then by their own\n{_summary(path)}"


def _summary(path: Path) -> str:
    out = io.StringIO()
    stats = pstats.Stats(str(path), stream=out)
    stats.strip_dirs().sort_stats("cumulative").print_stats(SHOWN)
    stats.sort_stats("tottime").print_stats(SHOWN)
    return "\n".join(line for line in out.getvalue().splitlines() if line.strip())
