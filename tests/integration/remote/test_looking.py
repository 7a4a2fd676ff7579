"""Runs on several boxes over real SSH: looked at together, and from a second laptop."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.boxes import Box, Boxes
from kit.sshd import Client
from kit.waiting import wait_for

MakeBox = Callable[..., Box]

SCRIPT = """
import os, sys, time
print("on", sys.argv[1], flush=True)
while not os.path.exists(os.path.expanduser("~/gate")):
    time.sleep(0.02)
with open("outputs/result", "w") as target:
    target.write("made on " + sys.argv[1])
"""


class Laptop:
    """A copy of the project on a machine with its own ssh configuration and connections."""

    def __init__(self, root: Path, command: Callable[..., Any], runtime: Callable[[], str]) -> None:
        (root / "aml_config").mkdir(parents=True)
        (root / "train.py").write_text(SCRIPT)
        self.root, self._command, self._runtime = root, command, runtime
        self._environment: dict[str, str] = {}

    def attach(self, *boxes: Box) -> None:
        for box in boxes:
            (self.root / "aml_config" / f"{box.name}.compute").write_text(box.compute)
            self._environment = {**box.environment, "HOLDFAST_HOME": str(self.root.parent / "home")}
        self.forget_connections()

    def forget_connections(self) -> None:
        self._environment["XDG_RUNTIME_DIR"] = self._runtime()

    def run(self, *words: str) -> Any:
        return self._command(*words, cwd=self.root, env=self._environment)

    def ok(self, *words: str) -> str:
        done = self.run(*words)
        assert done.code == 0, done.err
        return str(done.out)

    def start(self, target: str) -> str:
        return self.ok("submit", "-a", "-t", target, "train.py", target).strip()

    def records(self) -> dict[str, Any]:
        return {each["run_id"]: each for each in json.loads(self.ok("history", "list", "-o", "json"))}


@pytest.fixture
def new_laptop(tmp_path: Path, holdfast: Callable[..., Any]) -> Iterator[Callable[[str], Laptop]]:
    with tempfile.TemporaryDirectory() as runtime:
        yield lambda name: Laptop(tmp_path / name / "iris", holdfast, lambda: tempfile.mkdtemp(dir=runtime))


@pytest.fixture
def laptop(new_laptop: Callable[[str], Laptop]) -> Laptop:
    made = new_laptop("laptop")
    (made.root / "aml_config" / "project.json").write_text(json.dumps({"format": 1, "id": "ab" * 16}))
    return made


def open_gate(box: Box) -> None:
    (box.account.home / "gate").touch()


def test_one_look_asks_every_box_once_and_says_which_could_not_be_asked(laptop: Laptop, known_box: MakeBox) -> None:
    four = [known_box() for _ in range(4)]
    laptop.attach(*four)
    started = {name: [laptop.start(name) for _ in range(2)] for name in (each.name for each in four)}
    wait_for(lambda: {each["status"] for each in laptop.records().values()} == {"Running"}, 60, "all are known to run")
    for each in four:
        open_gate(each)
    down, locked, *well = four
    down.server.stop()
    (locked.account.home / ".ssh" / "authorized_keys").unlink()
    laptop.forget_connections()
    before = [each.link.counters.connections for each in four]
    done = laptop.run("history", "list", "-o", "json")
    assert done.code == 0
    assert [each.link.counters.connections - known for each, known in zip(four, before, strict=True)] == [1] * 4
    assert f"warning: {locked.name}: login needed: holdfast computetarget check {locked.name}\n" in done.err
    assert f"warning: {down.name}: unreachable since " in done.err

    wait_for(
        lambda: all(laptop.records()[run]["status"] == "Completed" for each in well for run in started[each.name]),
        60,
        "the runs of the boxes that can be asked are known to have ended",
    )
    records = laptop.records()
    for each in well:
        for run in started[each.name]:
            assert records[run]["attachments"] == ["outputs/result"]
            assert (laptop.root / ".holdfast/runs" / run / "outputs/result").read_text() == f"made on {each.name}"
    for each, reason in ((down, "unreachable since"), (locked, "login needed")):
        for run in started[each.name]:
            assert records[run]["status"] == "Running"
            assert records[run]["host_state"]["unreachable_since"]
            assert reason in laptop.ok("status", "-r", run, "-o", "table")

    down.server.start()
    wait_for(lambda: laptop.records()[started[down.name][0]]["status"] == "Completed", 60, "it is asked again")
    assert "host_state" not in laptop.records()[started[down.name][0]]


def test_a_second_laptop_sees_follows_and_cancels_runs_that_it_did_not_submit(
    laptop: Laptop, new_laptop: Callable[[str], Laptop], known_box: MakeBox, boxes: Boxes
) -> None:
    gpu1 = known_box()
    laptop.attach(gpu1)
    first, second, third = (laptop.start("gpu1") for _ in range(3))

    other = new_laptop("other")
    shutil.copy(laptop.root / "aml_config" / "project.json", other.root / "aml_config")
    other.attach(gpu1.seen_from(boxes.client()))

    def have_begun() -> bool:
        return all(laptop.ok("logs", "-r", each) == "on gpu1\n" for each in (first, third))

    wait_for(have_begun, 60, "the scripts have begun")
    assert other.ok("logs", "-r", first, "-t", "gpu1") == "on gpu1\n"
    assert other.run("cancel", "-r", second, "-t", "gpu1", "--grace", "0s").code == 0
    assert laptop.records()[second]["status"] == "Canceled"

    said = other.run("history", "import", "-t", "gpu1")
    assert said.code == 0
    assert said.err.splitlines()[-2:] == [f"Imported {third}.", "1 run imported from gpu1."]
    ours, theirs = laptop.records(), other.records()
    assert list(ours) == list(theirs)
    for run in ours:
        for key in ("run_number", "arguments", "script_name", "snapshot", "created_utc", "start_time_utc"):
            assert ours[run][key] == theirs[run][key]
    other.ok("project", "restore", "-r", first, "--path", str(other.root.parent / "restored"))
    assert (other.root.parent / "restored" / "train.py").read_text() == SCRIPT
    open_gate(gpu1)
    followed = other.run("logs", "-f", "-r", third)
    assert (followed.code, followed.out) == (0, "on gpu1\n")
    assert (other.root / ".holdfast/runs" / third / "outputs/result").read_text() == "made on gpu1"


def test_a_laptop_with_another_project_is_told_which_projects_the_box_has(
    laptop: Laptop, new_laptop: Callable[[str], Laptop], known_box: MakeBox, boxes: Boxes
) -> None:
    gpu1 = known_box()
    laptop.attach(gpu1)
    open_gate(gpu1)
    run = laptop.start("gpu1")
    stranger = new_laptop("stranger")
    stranger.attach(gpu1.seen_from(boxes.client()))
    refused = stranger.run("history", "import", "-t", "gpu1")
    assert refused.code == 242
    assert f"It has: iris (id {'ab' * 16}, 1 run)" in refused.err
    assert stranger.run("history", "import", "-t", "gpu1", "--project", "iris").code == 0
    assert list(stranger.records()) == [run]
    code = stranger.run("logs", "-f", "-r", run).code
    assert code == 0


def test_what_ended_runs_left_is_removed_from_the_boxes_that_can_be_reached(
    laptop: Laptop, known_box: MakeBox, client: Client
) -> None:
    gpu1, gpu2 = known_box(), known_box()
    laptop.attach(gpu1, gpu2)
    for each in (gpu1, gpu2):
        open_gate(each)
    runs = laptop.start("gpu1"), laptop.start("gpu2")
    wait_for(lambda: all(each["status"] == "Completed" for each in laptop.records().values()), 60, "both ended")
    gpu1.server.stop()
    laptop.forget_connections()
    done = laptop.run("experiment", "clean", "--all")
    assert done.code == 0
    assert "gpu1: unreachable since" in done.err
    assert f"removed {runs[1]} (" in done.err
    assert not list(gpu2.home.glob("runs/*/*"))
    assert [each.name for each in gpu1.home.glob("runs/*/*")] == [runs[0]]
