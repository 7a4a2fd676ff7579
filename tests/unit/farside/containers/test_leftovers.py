"""Which containers of a home have no owner any more, and how those of a run that lost its supervisor are removed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.containers import keeper, removal
from holdfast.farside.containers.daemon import forget
from holdfast.farside.containers.removal import monitors
from holdfast.farside.operations import docker_report, leftover_containers
from holdfast.farside.operations.sweep import sweep
from holdfast.farside.run import liveness, run_files
from holdfast.farside.system import processes
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Finished
from kit.waiting import wait_for
from unit.farside.programs import program

LABELS = {"holdfast.run": "r_1", "holdfast.project": "p"}
CONTAINER = {"program": "docker", "name": "holdfast-r_1", "labels": LABELS}
PLAN = {"format": 1, "project": "p", "run": "r_1", "generation": "g", "container": CONTAINER}


class Engine:
    """Answers `ps` from `listed`, one answer per call, and records the calls."""

    def __init__(self, listed: list[Finished]) -> None:
        self.listed, self.asked = listed, list[list[str]]()

    def __call__(self, program: str = "docker") -> Engine:
        return self

    def call(self, words: list[str], patience: float = 0.0) -> Finished:
        self.asked.append(list(words))
        return self.listed.pop(0) if words[0] == "ps" else Finished(0, "", "")

    def removed(self) -> list[str]:
        return [name for words in self.asked if words[0] == "rm" for name in words[3:]]


@pytest.fixture
def run(home: Home) -> Path:
    """The folder of a run in a container, without an owner."""
    folder = Path(home.run("p", "r_1"))
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "output.fifo").touch()
    run_files.write_created(str(folder), PLAN, "machine")
    return folder


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Engine]:
    def make(*listed: str | Finished) -> Engine:
        made = Engine([each if isinstance(each, Finished) else Finished(0, each, "") for each in listed])
        monkeypatch.setattr(removal, "DockerClient", made)
        return made

    return make


@pytest.fixture
def docker_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`docker_program(script)` is the `docker` of this test; its folder has a file for each call."""

    def make(script: str) -> Path:
        folder = tmp_path / "bin"
        program(folder / "docker", f"calls={folder}\n{script}")
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/docker.sock")
        return folder

    return make


def row(name: str, created: str, status: str = "running", **labels: str) -> dict[str, Any]:
    about = {"Labels": {each.replace("_", "."): value for each, value in labels.items()}, "Image": "x"}
    return {"Name": "/" + name, "Created": created, "State": {"Status": status}, "Config": about}


def shown(seconds_ago: float, distance: str = "Z") -> str:
    """A moment as engines write it, in UTC or with another offset."""
    hours = 0 if distance == "Z" else int(distance[:3])
    moment = time.gmtime(time.time() - seconds_ago + hours * 3600)
    return time.strftime("%Y-%m-%dT%H:%M:%S", moment) + ".123456789" + distance


def test_all_containers_of_a_run_go_by_their_labels(run, home, engine):
    made = engine("own\nroom\n")
    removal.remove(str(run))
    assert made.removed() == ["own", "room"]
    labels = [word for word in made.asked[0] if word.startswith("label=")]
    assert labels == [f"label=holdfast.home={home.path}", "label=holdfast.run=r_1", "label=holdfast.project=p"]
    assert not (run / "output.fifo").exists()


@pytest.mark.parametrize(
    ("is_up", "listed", "removed"),
    [(False, ["", "", "late\n", Finished(None, "", "")], ["late"]), (True, ["own\n"], ["own"])],
    ids=["Docker is making it yet", "the run's own was up: no other is waited for"],
)
def test_a_container_that_docker_is_making_yet_is_waited_for(run, engine, monkeypatch, is_up, listed, removed):
    monkeypatch.setattr(removal, "_BETWEEN", 0.0)
    if is_up:
        (run / "container.json").write_text("{}")
    made = engine(*listed)
    removal.remove(str(run), settling=20.0)
    assert made.removed() == removed
    assert made.listed == []


IN_PROGRESS = Finished(1, "", "Error response from daemon: removal of container r_1 is already in progress\n")
AWAY = Finished(1, "", "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?\n")
NO_SUCH = Finished(1, "", "Error response from daemon: No such container: r_1\n")


@pytest.mark.parametrize(
    ("answers", "patience", "is_removed", "calls"),
    [
        ([AWAY, IN_PROGRESS, Finished(1, "", "unexpected EOF\n"), Finished(0, "r_1\n", "")], 60.0, True, 4),
        ([IN_PROGRESS, NO_SUCH], 60.0, True, 2),
        ([IN_PROGRESS], 0.0, False, 1),
    ],
    ids=["a daemon that stops and starts", "another removed it", "out of time"],
)
def test_a_container_is_removed_through_a_restart_of_docker(monkeypatch, answers, patience, is_removed, calls):
    monkeypatch.setattr(removal, "_BETWEEN", 0.0)
    asked: list[list[str]] = []

    def call(words: list[str], patience: float) -> Finished:
        asked.append(words)
        return answers[len(asked) - 1]

    docker: Any = SimpleNamespace(call=call)
    assert removal.remove_named(docker, "r_1", patience) is is_removed
    assert asked == [["rm", "-f", "-v", "r_1"]] * calls


def test_a_room_is_removed_before_the_end_is_told(run, engine):
    os.mkfifo(run / removal.ROOM_FIFO)
    made = engine("room\n")
    removal.end(str(run), time.sleep)
    assert made.removed() == ["room"]
    assert not (run / removal.ROOM_FIFO).exists()


def test_a_docker_that_hangs_does_not_keep_others_from_being_told(run, docker_program, monkeypatch):
    assert liveness.PATIENCE <= 2.0
    assert docker_report.PATIENCE == keeper.START_PATIENCE, "a look waits as long as a run does"
    monkeypatch.setattr(liveness, "PATIENCE", 0.1)
    docker_program("exec sleep 1000")
    begun = time.monotonic()
    liveness.adjudicate(str(run))
    assert time.monotonic() - begun < 60
    last = JournalWriter(str(run / "journal.jsonl")).ended()
    assert last is not None and last["reason"] == "supervisor-died"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        *(
            ([row("shell", shown(90_000), status, holdfast_shell="1")], expected)
            for status, expected in (("running", []), ("exited", ["shell"]), ("created", ["shell"]))
        ),
        *(
            ([row("young", shown(60, zone)), row("old", shown(1200, zone)), row("odd", "yesterday")], ["old"])
            for zone in ("Z", "+09:00", "-08:00")
        ),
    ],
    ids=["running shell", "exited shell", "created shell", "in UTC", "in Tokyo", "in Los Angeles"],
)
def test_a_shell_in_use_stays_and_what_belongs_to_no_run_goes_when_it_is_old(home, monkeypatch, rows, expected):
    Path(home.container_home()).mkdir()
    monkeypatch.setattr(leftover_containers, "_listed", lambda *_: rows)
    assert [each["name"] for each in leftover_containers.find(home)] == expected


def test_leftovers_are_found_also_where_the_daemon_was_forgotten_and_removed_once(home, docker_program):
    found = json.dumps([row("holdfast-r_1", shown(60), holdfast_run="r_1", holdfast_project="p")])
    calls = docker_program(f"echo $1 >> $calls/asked; case $1 in ps) echo id ;; inspect) echo '{found}' ;; esac")
    Path(home.container_home()).mkdir()
    forget(home)
    answer = sweep(home, {})
    assert answer["removed"] == [["container holdfast-r_1", 1, 0]]
    assert (calls / "asked").read_text().split() == ["ps", "inspect", "rm"]


def test_an_engines_monitor_of_this_run_and_no_other_is_spared(run, tmp_path):
    conmon = program(tmp_path / "conmon", "read gone")
    names = {"holdfast-r_1": True, "holdfast-r_1-room": True, "holdfast-r_12": False, "mine": False}
    started = {
        name: subprocess.Popen([conmon, "-c", "id", "-n", name], stdin=subprocess.PIPE, start_new_session=True)
        for name in names
    }
    try:
        wait_for(lambda: all(_name(each.pid) == "conmon" for each in started.values()))
        spared = monitors(str(run))
        assert {name: each.pid in spared for name, each in started.items()} == names
        # The kernel's own lists may miss a child while other children of this process end.
        found = processes.descendants(os.getpid(), lambda: monitors(str(run)), processes.all_children())
        living = {each.pid for each in found}
        assert {name: each.pid not in living for name, each in started.items()} == names
    finally:
        for each in started.values():
            each.communicate()


def _name(pid: int) -> str:
    found = processes.look(pid)
    return found.name if found else ""
