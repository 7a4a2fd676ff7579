"""What the two processes that own a run cost while it runs."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import children
import profiles
from children import Place
from measuring import FailedError, Figures, one
from results import Bar, Line, Row, Table
from session import Session

NAME = "supervision"
TITLE = "Cost of supervisor and guardian during a run of a minute"
TOOLS: tuple[str, ...] = ("holdfast",)

_SCRIPT = "import time\nfor second in range({seconds}):\n    print(second, flush=True)\n    time.sleep(1)\n"
_HOW = """\
A script prints one line a second for {seconds} s, submitted with `holdfast submit`, which stays and shows the
lines. CPU time is user and system time from `/proc`, from the start of each process to the last look before the end
of the script, divided by the length of the run. Memory is the maximum of {looks} looks. RSS counts pages that the
processes share once for each; PSS counts them once in all, which is what they really use. Client and agent exist
only while a user follows the run."""


@dataclass(frozen=True)
class Look:
    """CPU seconds so far, resident and proportional memory in bytes."""

    cpu: float
    rss: int
    pss: int


def measure(session: Session) -> Row:
    seconds = 60 if not session.quick else 6
    place = session.place("supervision")
    (place.project / "s.py").write_text(_SCRIPT.format(seconds=seconds))
    (place.project / "hi.py").write_text('print("hi")\n')
    children.run(place, ["holdfast", "submit", "hi.py"], "hi")  # so that the far side is there and compiled
    session.say(f"a run of {seconds} s")
    begin = time.monotonic()
    with subprocess.Popen(
        ["holdfast", "submit", "s.py"],
        cwd=place.project,
        env=place.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as client:
        looks = _watch(place, client, begin, seconds)
    if client.returncode != 0:
        raise FailedError(f"the run ended with exit code {client.returncode}")
    how = _HOW.format(seconds=seconds, looks=len(looks["supervisor"]))
    return Row(NAME, TITLE, how, _tables(looks, seconds))


def profile(session: Session) -> str:
    place = session.place("supervision-profile")
    (place.project / "s.py").write_text(_SCRIPT.format(seconds=3))
    return profiles.run_timeline(place, ["submit", "s.py"])


def look_at(pid: int) -> Look:
    memory = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in memory if line.endswith(" kB")}
    return Look(max(_ticks(pid), _scheduled(pid)), sizes["Rss"], sizes["Pss"])


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _ticks(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _scheduled(pid: int) -> float:
    """The scheduler's own count, in nanoseconds: ticks of 10 ms miss a process that wakes for microseconds."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    files = [thread / "schedstat" for thread in threads]
    return sum(int(file.read_text().split()[0]) for file in files if file.exists()) / 1e9


def _watch(place: Place, client: subprocess.Popen[bytes], begin: float, seconds: int) -> dict[str, list[Look]]:
    """Looks at all four processes, once a second until shortly before the script ends."""
    supervisor = parent_of(_script_pid(place, client))
    pids = {"supervisor": supervisor, "guardian": parent_of(supervisor), "client": client.pid}
    agents = Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
    pids |= {"agent": int(agents[0])} if agents else {}
    looks: dict[str, list[Look]] = {name: [] for name in pids}
    while True:
        for name, pid in pids.items():
            looks[name].append(look_at(pid))
        if time.monotonic() > begin + seconds - 1.5:
            return looks
        time.sleep(1)


def _script_pid(place: Place, client: subprocess.Popen[bytes]) -> int:
    """From the run's own journal, which the client copies."""
    runs = place.project / ".holdfast" / "runs"
    while client.poll() is None:
        for journal in runs.glob("*/journal.jsonl"):
            events = [json.loads(line) for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
            names = [event["e"] for event in events]
            if "started" in names and "ended" not in names:
                return int(events[names.index("started")]["pid"])
        time.sleep(0.05)
    raise FailedError("the run ended before its processes were seen")


def _tables(looks: dict[str, list[Look]], seconds: int) -> tuple[Table, ...]:
    both = ("supervisor", "guardian")
    share = {name: one(found[-1].cpu / seconds) for name, found in looks.items()}
    rss = {name: one(max(look.rss for look in found)) for name, found in looks.items()}
    pss = {name: one(max(look.pss for look in found)) for name, found in looks.items()}
    parts = []
    for title, unit, scale, figures, limit in (
        ("CPU", "% of a core", 100.0, share, 1.0),
        ("Memory, RSS", "MB", 1e-6, rss, 40.0),
        ("Memory, PSS", "MB", 1e-6, pss, 40.0),
    ):
        together = Line("both together", one(sum(figures[name].median for name in both)), Bar(limit))
        parts.append(Table(title, unit, scale, together, _separately(figures)))
    return tuple(parts)


def _separately(figures: dict[str, Figures]) -> tuple[Line, ...]:
    return tuple(Line(name, each, is_peer=False) for name, each in figures.items())
