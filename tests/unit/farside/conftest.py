"""Runs that live: a process of its own holds their lock, as a guardian does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX, 1, 0)
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def make_living() -> Iterator[Callable[[Path], Path]]:
    """Makes the folder of a run, and a process that holds its lock until the test ends."""
    holders = []

    def make(run: Path) -> Path:
        run.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-I", "-S", "-c", HOLD, str(run / "lock")]
        holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holders.append(holder)
        assert holder.stdout is not None and holder.stdout.readline() == b"\n"
        return run

    yield make
    for holder in holders:
        holder.communicate()
