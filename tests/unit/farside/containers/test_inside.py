"""The launcher, without a container around it: as a process with its three pipes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.containers.removal import is_launcher_alive
from holdfast.farside.system import processes
from holdfast.farside.system.layout import ENTRY

PYTHON = sys.executable


class Launched:
    """`inwards` is the keeper's end."""

    def __init__(self, run: Path) -> None:
        self.run, self.inside = run, run / "inside"
        self.inside.mkdir(parents=True)
        for path in (self.inside / "in", self.inside / "events", run / "output.fifo"):
            os.mkfifo(path)
        self.reader = os.open(self.inside / "in", os.O_RDONLY | os.O_NONBLOCK)
        self.inwards = os.open(self.inside / "in", os.O_WRONLY)
        self.events = os.open(self.inside / "events", os.O_RDONLY | os.O_NONBLOCK)
        self.output = os.open(run / "output.fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.process: subprocess.Popen[bytes] | None = None
        self.said = b""

    def start(self, script: str, **task: Any) -> None:
        argv = [PYTHON, "-I", "-S", ENTRY, "inside", str(self.inside)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = {"argv": [PYTHON, "-c", script], "environment": {"PYTHONUNBUFFERED": "1"}, "directory": str(self.run)}
        usual = {"grace": 2.0, "umask": 0o022, "looks": False, "python": PYTHON, "gpus": None}
        self.tell(**{**first, **usual, **task})

    def tell(self, **keys: Any) -> None:
        os.write(self.inwards, json.dumps(keys).encode() + b"\n")

    def let_go(self) -> None:
        """Like a keeper that dies."""
        os.close(self.inwards)
        self.inwards = os.open(os.devnull, os.O_WRONLY)

    def wait_for(self, words: bytes) -> None:
        deadline = time.monotonic() + 60
        while words not in self.said:
            with contextlib.suppress(BlockingIOError):
                self.said += os.read(self.output, 65536)
            assert time.monotonic() < deadline, self.said
            time.sleep(0.002)

    def ended(self) -> int:
        assert self.process is not None
        _, errors = self.process.communicate(timeout=60)
        with contextlib.suppress(BlockingIOError):
            self.said += os.read(self.output, 1 << 20)
        assert b"Traceback" not in errors, errors
        return self.process.returncode

    def status(self) -> dict[str, Any]:
        found = json.loads((self.inside / "status.json").read_text())
        assert isinstance(found, dict)
        return found

    def events_said(self) -> list[dict[str, Any]]:
        with contextlib.suppress(BlockingIOError):
            return [json.loads(line) for line in os.read(self.events, 1 << 20).splitlines()]
        return []

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for descriptor in (self.reader, self.inwards, self.events, self.output):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    with contextlib.closing(Launched(tmp_path / "run")) as made:
        yield made


def test_the_scripts_output_and_code_are_its_own(launched):
    launched.start("import os; os.write(1, b'\\xff\\x00out'); os.write(2, b'err'); os._exit(125)")
    assert launched.ended() == 125
    assert launched.said == b"\xff\x00outerr"
    status = launched.status()
    assert (status["code"], status["signal"], status["outside"], status["swept"]) == (125, None, None, [])
    assert [each["e"] for each in launched.events_said()] == ["started"]


def test_a_signal_that_ends_the_script_is_told_as_that(launched):
    launched.start("import os; os.kill(os.getpid(), 11)")
    assert launched.ended() == 128 + 11
    assert (launched.status()["code"], launched.status()["signal"]) == (None, 11)


def test_a_signal_through_the_pipe_is_not_from_outside(launched):
    launched.start("import time; print('up'); time.sleep(60)")
    launched.wait_for(b"up")
    launched.tell(signal=15)
    assert launched.ended() == 128 + 15
    assert launched.status()["outside"] is None


def test_a_signal_from_outside_is_handed_on_and_noted(launched):
    launched.start("import signal, sys, time; signal.signal(15, lambda *_: sys.exit(4)); print('up'); time.sleep(60)")
    launched.wait_for(b"up")
    assert launched.process is not None
    launched.process.send_signal(signal.SIGTERM)
    assert launched.ended() == 4
    assert (launched.status()["code"], launched.status()["outside"]) == (4, 15)


def test_everything_ends_when_the_run_has_no_owner_any_more(launched):
    launched.start(
        "import signal, subprocess, sys, time; signal.signal(15, signal.SIG_IGN); "
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True); print('up', child.pid); time.sleep(60)"
    )
    launched.wait_for(b"\n")
    child = int(launched.said.split()[1])
    launched.let_go()
    assert launched.ended() == 128 + 9
    assert launched.status()["owned"] is False
    left = processes.look(child)
    assert left is None or left.state == "Z", "it is dead; whether it is reaped is the machine's affair"


def test_a_launcher_without_a_keeper_starts_nothing(launched, tmp_path):
    launched.let_go()
    launched.start(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert launched.ended() == 125
    assert not (tmp_path / "ran").exists()


def test_what_the_script_leaves_is_ended_and_named(launched):
    launched.start("import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True)")
    assert launched.ended() == 0
    (row,) = launched.status()["swept"]
    assert row[1:] == ["sleep", "SIGTERM"]


def test_a_program_that_is_not_there_is_told(launched):
    launched.start("", argv=["/no/such/python", "t.py"])
    assert launched.ended() == 125
    (event,) = launched.events_said()
    assert event["e"] == "cannot-start" and "`/no/such/python`" in event["text"]


def test_a_living_launcher_is_known_by_its_lock(launched):
    launched.start("import time; print('up'); time.sleep(60)")
    launched.wait_for(b"up")
    assert is_launcher_alive(str(launched.inside))
    assert launched.process is not None
    launched.process.kill()
    launched.process.communicate()
    assert not is_launcher_alive(str(launched.inside))


def test_a_large_environment_arrives_whole(launched):
    script = "import os; print(len(os.environ['LARGE']), ascii(os.environ['ODD']))"
    environment = {"LARGE": "x" * 100_000, "ODD": "é\udcff"}
    launched.start("", argv=[PYTHON, "-X", "utf8", "-c", script], environment=environment)
    assert launched.ended() == 0
    assert launched.said == b"100000 '\\xe9\\udcff'\n"


def test_the_images_own_python_is_described_before_the_script_starts(launched):
    launched.start("pass", looks=True)
    assert launched.ended() == 0
    events = launched.events_said()
    assert [each["e"] for each in events] == ["python", "started"]
    assert events[0]["version"].startswith("3.")
