"""Runs in containers that a test ends in some way: how they are begun, and what has to be true when they are over."""

from __future__ import annotations

from typing import Any

import pytest

from integration.docker.benches import ContainerBench
from kit import processes
from kit.waiting import wait_for

SLEEPER = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.05)\n"
COUNTING = """
import sys, time
print("up", flush=True)
for number in range(100_000):
    sys.stdout.write("%06d\\n" % number)
    if number % 1000 == 0:
        time.sleep(0.01)
sys.stdout.flush()
"""
WAITING = """
import os, time
print("up", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
"""
POLITE = """
import signal, sys, time
def save(number, frame):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
while True:
    time.sleep(0.05)
"""


behind_ssh = pytest.mark.parametrize("kind", ["remotedocker"])
"""For what another account and another way to Docker could change; the rest is the same code and runs here."""


def begun(bench: ContainerBench, script: str, *words: str, name: str = "t.py", until: bytes = b"up\n") -> str:
    """The id of a run whose script has said `until`."""
    bench.write(name, script)
    run_id = bench.start(*words, name)
    wait_for(lambda: until in (bench.far(run_id) / "driver_log").read_bytes(), what="the script speaks")
    return run_id


def ended(bench: ContainerBench, run_id: str) -> dict[str, Any]:
    """The journal's last line, when it is there."""
    bench.event(run_id, "ended")
    return dict(bench.journal(run_id)[-1])


def members(run_id: str) -> list[processes.Process]:
    """Processes of the run, in its container or beside it."""
    mark = f"HOLDFAST_RUN_ID={run_id}"
    return [one for one in processes.every() if one.is_alive and mark in one.environment]


def nothing_is_left(bench: ContainerBench, run_id: str) -> None:
    wait_for(lambda: members(run_id) == [], what="the processes of the run are gone")
    wait_for(lambda: bench.containers() == [], what="the container is removed")
    bench.until_left(run_id)


def keeper(bench: ContainerBench, run_id: str) -> int:
    return int(bench.event(run_id, "started")["pid"])
