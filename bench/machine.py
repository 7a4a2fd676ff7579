"""What the figures were measured on, without saying whose it is: no names of machines, users or folders."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from peers import Tool


@dataclass(frozen=True)
class Machine:
    processor: str
    cores: int
    memory: int
    kernel: str
    python: str
    load: float
    """Processes that wanted to run, in the minute before: what else the machine was doing."""


def this_machine() -> Machine:
    return Machine(
        processor=_field(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        load=os.getloadavg()[0],
    )


def versions(tools: Mapping[str, Tool]) -> dict[str, str]:
    """By name, Holdfast first; git is the machine's own."""
    found = {name: tool.version or tool.problem for name, tool in tools.items()}
    git = subprocess.run(["git", "--version"], capture_output=True, text=True).stdout.split()
    return {**found, "git": git[2] if len(git) > 2 else "not there"}


def _field(path: Path, name: str) -> str:
    if not path.exists():
        return ""
    found = [line.partition(":")[2].strip() for line in path.read_text().splitlines() if line.startswith(name)]
    return found[0] if found else ""
