"""A start that was reported as failed stays failed, even if a late process arrives. A program named systemd-run stands
in for the user's service manager."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.engines import direct
from holdfast.farside.engines.engine import UNANSWERED
from holdfast.farside.run import run_files, run_start
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import JOURNAL, Home
from holdfast.farside.system.refusal import Refused
from kit.waiting import wait_for
from unit.farside.programs import program

PLAN: dict[str, Any] = {"format": 1, "project": "p", "run": "run_1", "generation": "ab", "snapshot": "0" * 64}
SLOW = """#!/bin/sh
cat > {place}/request
shift 4
(
    while [ ! -e {place}/gate ]; do [ -e {place}/over -o ! -d {place} ] && exit; sleep 0.01; done
    "$@" < {place}/request > {place}/told 2>&1
) > /dev/null 2>&1 &
: > {place}/taken
exec sleep 100
"""


@pytest.fixture
def home(home: Home) -> Home:
    direct.set_start(home, direct.USER_UNIT)
    return home


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A service manager that does not answer, and starts its command when a file `gate` exists."""
    program(tmp_path / "bin" / "systemd-run", SLOW.format(place=tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(direct, "PATIENCE", 0.05)

    class Unhurried(subprocess.Popen[bytes]):
        """Is given up once it has read its request, however long that takes a busy machine."""

        def communicate(self, given: bytes | None = None, patience: float | None = None) -> Any:
            while True:
                try:
                    return super().communicate(given, patience)
                except subprocess.TimeoutExpired:
                    if (tmp_path / "taken").exists():
                        raise
                    given = None  # it is on its way, and may be handed over only once

    monkeypatch.setattr(subprocess, "Popen", Unhurried)
    yield tmp_path
    (tmp_path / "over").touch()


def test_a_guardian_that_comes_after_its_time_finds_the_name_taken(home, slow):
    with pytest.raises(Refused, match="did not answer") as caught:
        run_start.start_or_give_up(home, PLAN, {}, {})
    assert caught.value.kind == UNANSWERED
    (slow / "gate").touch()
    assert "not empty" in wait_for((slow / "told").read_text)
    ended = JournalWriter(os.path.join(home.run("p", "run_1"), JOURNAL)).ended()
    assert ended is not None
    assert ended["reason"] == "not-started"
    assert "did not answer" in ended["detail"]
    with pytest.raises(Refused, match="was given up"):
        run_start.start(home, PLAN, {}, {})


def test_a_guardian_that_was_quicker_than_the_giving_up_has_the_run(home, slow, monkeypatch):
    give_up = run_start.give_up

    def late(home: Home, message: dict[str, Any]) -> bool:
        run_files.create_folder(home.run("p", "run_1"), PLAN, {})
        return give_up(home, message)

    monkeypatch.setattr(run_start, "give_up", late)
    assert run_start.start_or_give_up(home, PLAN, {}, {})
    assert JournalWriter(os.path.join(home.run("p", "run_1"), JOURNAL)).ended() is None


def test_if_the_name_cannot_be_taken_the_start_is_not_called_failed(home, slow, monkeypatch):
    def full(home: Home, message: dict[str, Any]) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_start, "give_up", full)
    with pytest.raises(Refused) as caught:
        run_start.start_or_give_up(home, PLAN, {}, {})
    assert caught.value.kind == run_start.UNSETTLED
