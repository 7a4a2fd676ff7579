"""A run that has said its last word, and whose owner still tidies up."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast.farside.layout import Home
from holdfast.farside.refusal import Refused
from holdfast.farside.run import subscription
from holdfast.farside.store import storage

HOLD = """
import fcntl, os, sys
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(lock, fcntl.LOCK_EX, 1, 1)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "runs" / "p" / "r"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text(json.dumps({"t": 1.0, "e": "ended", "reason": "completed"}) + "\n")
    return folder


def remove(run: Path) -> int:
    home = Home(str(run.parents[2]))
    return int(storage.remove(home, {"project": "p", "run": "r"})["removed"])


def test_a_run_that_has_ended_is_removed_when_its_owner_has_tidied_up(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "TIDYING", 60.0)
    argv = [sys.executable, "-I", "-S", "-c", HOLD, str(run / "lock")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"held\n"
        assert owner.stdin is not None
        later = threading.Timer(0.1, owner.stdin.close)
        later.start()
        assert remove(run) > 0
        later.join()
    assert not run.exists()


def test_an_owner_that_does_not_come_to_an_end_keeps_its_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "TIDYING", 0.05)
    argv = [sys.executable, "-I", "-S", "-c", HOLD, str(run / "lock")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"held\n"
        with pytest.raises(Refused, match="`r` is still alive"):
            remove(run)
        assert owner.stdin is not None
        owner.stdin.close()
    assert run.is_dir()
