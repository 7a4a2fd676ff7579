"""The machine that the figures were measured on, without names of machines, users or folders."""

from __future__ import annotations

import os
import platform
import shutil
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
    """By name, Holdfast first; git and the Docker engine are the machine's own."""
    found = {name: tool.version or tool.problem for name, tool in tools.items()}
    return {**found, "git": _version("git"), "Docker": _version("dockerd")}


def _version(program: str) -> str:
    """The third word, as in `git version 2.39.5`."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    found = shutil.which(program, path=path)
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout.split() if found else []
    return said[2].rstrip(",") if len(said) > 2 else "not there"


def _field(path: Path, name: str) -> str:
    if not path.exists():
        return ""
    found = [line.partition(":")[2].strip() for line in path.read_text().splitlines() if line.startswith(name)]
    return found[0] if found else ""
