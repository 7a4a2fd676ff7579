"""A script may put links in the place of its run's own files. That run alone cannot be judged: others are looked at,
fetched and cleaned as ever."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from holdfast.farside.agent import Agent
from holdfast.farside.operations import storage, sweep
from holdfast.farside.run import liveness
from holdfast.farside.system import frames
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.processes import carrying, other_guardians
from holdfast.farside.system.refusal import Refused
from kit.waiting import wait_for

ODD = ("journal.jsonl", "lock", "folder")
SCRIPT = """
import os, time
print("up", flush=True)
while not os.path.exists(GO):
    time.sleep(0.01)
"""


def bend(folder: Path, which: str) -> tuple[Path, Path]:
    """Puts a link where that was; returns where it stands, and what was there."""
    path = folder if which == "folder" else folder / which
    aside = path.with_name("." + path.name + "-moved")
    path.rename(aside)
    path.symlink_to(aside)
    return path, aside


@pytest.fixture
def run(home) -> Path:
    """A run without an end, of which nothing is alive."""
    folder = Path(home.run("p", "r_1"))
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    JournalWriter(str(folder / "journal.jsonl")).begin(generation="g")
    return folder


@pytest.mark.parametrize("which", ODD)
def test_one_odd_run_blinds_nobody_and_is_named_and_can_be_cleaned(bench, which):
    go = bench.root / "go-on"
    odd, *good = (bench.begin(f"GO = {str(go)!r}\n{SCRIPT}") for _ in range(3))
    folder = bench.far(odd)
    bench.kill_owners(odd)
    mark = f"HOLDFAST_RUN_ID={odd}".encode()
    place, aside = bend(folder, which)
    go.touch()
    wait_for(lambda: not carrying(mark), what="the script of the odd run is over")
    for run_id in good:
        bench.until_left(run_id)
    listed = bench.run("history", "list")
    assert listed.code == 0
    assert f"Cannot tell whether {odd} is alive: `{place}` is a link." in " ".join(listed.err.split())
    assert [bench.record(run_id)["status"] for run_id in good] == ["Completed", "Completed"]
    assert bench.run("experiment", "status", "-r", odd).code == 0
    journal = {"journal.jsonl": aside, "lock": folder / "journal.jsonl", "folder": aside / "journal.jsonl"}[which]
    assert '"ended"' not in journal.read_text()
    cleaned = bench.run("experiment", "clean", "--all")
    assert cleaned.code == 0, cleaned.err
    assert [run_id for run_id in (odd, *good) if list(bench.home.glob(f"runs/*/{run_id}"))] == [odd]
    named = bench.run("experiment", "clean", "-r", odd, "--discard-outputs")
    assert named.code == 0, named.err
    assert not os.path.lexists(folder)
    assert which != "folder" or journal.exists(), "what a link leads to stays"


@pytest.mark.parametrize("which", ODD)
def test_a_run_that_is_held_is_not_removed_whatever_its_script_links(home, run, make_living, which):
    make_living(run)
    bend(run, which)
    with pytest.raises(Refused, match="still alive"):
        storage.remove(home, {"project": "p", "run": "r_1"})
    assert os.path.lexists(run)


@pytest.mark.parametrize("which", ODD)
def test_an_odd_run_is_never_ended_and_goes_when_it_is_named(home, run, which):
    place, _ = bend(run, which)
    assert [str(error.filename) for error in liveness.adjudicate(str(run)).values()] == [str(place)]
    assert liveness.is_alive(str(run))
    assert storage.remove(home, {"project": "p", "run": "r_1"})["removed"] > 0
    assert not os.path.lexists(run)


@pytest.mark.parametrize("which", ODD)
def test_sweeps_and_other_guardians_go_past_an_odd_run(home, run, which):
    bend(run, which)
    old = Path(home.versions()) / "0123"
    old.mkdir(parents=True)
    os.utime(old, (1e9, 1e9))
    sweep.sweep(home, {})
    assert not old.exists()
    assert other_guardians(home, home.run("p", "another")) == set()


def heard(output: io.BytesIO) -> list[dict[str, object]]:
    output.seek(0)
    found = []
    while (frame := frames.decode(output.read)) is not None:
        found.append({**frame[0], "body": frame[1].decode()})
    return found


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_an_end_that_cannot_be_written_is_told_and_the_request_is_answered_once(home, run, monkeypatch, number):
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(run / "journal.jsonl"))

    monkeypatch.setattr(JournalWriter, "append", full)
    output = io.BytesIO()
    runs = [{"project": "p", "run": "r_1", "have": {}}]
    Agent(home, output)._handle({"id": 7, "op": "follow", "runs": runs, "stay": False}, b"")
    said = heard(output)
    assert [each["id"] for each in said if "id" in each] == [7]
    assert "ok" in said[0]
    told = [each["body"] for each in said if each.get("push") == "problem"]
    assert told == [f"`{run / 'journal.jsonl'}`: {os.strerror(number)}"]
    assert said[-1]["push"] == "level"


def test_an_error_after_the_answer_ends_the_agent_with_its_reason(home, run, monkeypatch):
    def broken(*_: object) -> None:
        raise ValueError("unheard of")

    output = io.BytesIO()
    agent = Agent(home, output)
    monkeypatch.setattr(agent, "_judge", broken)
    with pytest.raises(SystemExit, match="unheard of"):
        agent._handle({"id": 7, "op": "follow", "runs": [], "stay": False}, b"")
    assert [each["id"] for each in heard(output)] == [7]
