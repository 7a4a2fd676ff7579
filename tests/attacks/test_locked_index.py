"""Another process keeps the index locked: reading works without it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from holdfast.history import database
from holdfast.history.database import BUSY_SECONDS, Database
from unit.cli.conftest import Recorded

HOLDER = """
import fcntl, os, sqlite3, sys
kind, state = sys.argv[1:]
path = os.path.join(state, "index-1.sqlite")
if kind == "damaged, and its folder locked":
    open(path, "w").write("no index" * 1000)
    descriptor = os.open(state, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
else:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN " + kind)
print("held", flush=True)
sys.stdin.read()
"""
READING = (
    ("history", "list"),
    ("history", "list", "-o", "table"),
    ("history", "list", "--query", "[].run_id"),
    ("history", "last"),
    ("history", "info", "-r", "last"),
    ("history", "compare", "last", "last"),
    ("status", "-r", "last"),
    ("logs", "-r", "last"),
)


@pytest.fixture
def holding(recorded: Recorded) -> Iterator[Callable[[str], None]]:
    """Another process that keeps the index of the recorded project locked."""
    with contextlib.ExitStack() as stack:

        def hold(kind: str) -> None:
            words = [sys.executable, "-c", HOLDER, kind, str(recorded.root / ".holdfast")]
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdin is not None and process.stdout is not None
            stack.callback(process.wait)
            stack.callback(process.stdin.close)
            stack.callback(process.stdout.close)
            assert process.stdout.readline() == "held\n"

        yield hold


class Clock:
    """Passes while somebody sleeps, and only then."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_writing_waits_for_a_damaged_index_longer_than_reading(tmp_path, monkeypatch):
    """Another process has the folder locked until so much time has passed."""
    clock, locked = Clock(), BUSY_SECONDS / 2
    monkeypatch.setattr(database, "time", clock)
    monkeypatch.setattr(database, "_is_locked", lambda _: clock.now > locked)
    found = Database(tmp_path)
    found.path.write_bytes(b"no index" * 1000)
    assert found.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
    assert clock.now < locked
    found.write(lambda connection: connection.execute("SELECT count(*) FROM runs").fetchone())
    assert clock.now > locked


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "IMMEDIATE", "damaged, and its folder locked"])
def test_a_locked_index_stops_no_reading(kind, recorded, holding, command):
    first = recorded.add(files={"driver_log": "hi\n"})
    assert command("history", "rebuild").code == 0
    expected = [command(*words) for words in READING]
    assert all(each.err == "" for each in expected)
    holding(kind)
    assert [command(*words) for words in READING] == expected
    second = recorded.add()
    found = command("history", "list", "--query", "[].run_id").out
    assert first in found and second in found, "also what the index does not have yet"
