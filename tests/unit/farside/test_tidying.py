"""A run that has written its last line, and whose owner still tidies up."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from holdfast.farside.operations import storage
from holdfast.farside.run import liveness
from holdfast.farside.system.layout import SUPERVISOR_BYTE, Home
from holdfast.farside.system.refusal import Refused
from unit.farside.programs import lock_held


@pytest.fixture
def run(home: Home) -> Path:
    folder = Path(home.run("p", "r"))
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text(json.dumps({"t": 1.0, "e": "ended", "reason": "completed"}) + "\n")
    return folder


def remove(home: Home) -> int:
    return int(storage.remove(home, {"project": "p", "run": "r"})["removed"])


def test_a_run_that_has_ended_is_removed_when_its_owner_has_tidied_up(home, run, monkeypatch):
    monkeypatch.setattr(liveness, "TIDYING", 60.0)
    with lock_held(run / "lock", SUPERVISOR_BYTE) as owner:
        later = threading.Timer(0.05, owner.close)
        later.start()
        assert remove(home) > 0
        later.join()
    assert not run.exists()


def test_an_owner_that_does_not_come_to_an_end_keeps_its_run(home, run, monkeypatch):
    monkeypatch.setattr(liveness, "TIDYING", 0.05)
    with lock_held(run / "lock", SUPERVISOR_BYTE), pytest.raises(Refused, match="`r` is still alive"):
        remove(home)
    assert run.is_dir()
