"""Scripts of runs in containers that a test ends in some way."""

from __future__ import annotations

from typing import Any

import pytest

from integration.docker.benches import ContainerBench

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
"""For tests that another account and another way to Docker could change; the rest is the same code and runs here."""


def ended(bench: ContainerBench, run_id: str) -> dict[str, Any]:
    """The journal's last line, when it is there."""
    bench.event(run_id, "ended")
    return dict(bench.journal(run_id)[-1])


def keeper(bench: ContainerBench, run_id: str) -> int:
    return int(bench.event(run_id, "started")["pid"])
