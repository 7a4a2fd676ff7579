"""What Holdfast says and asks before it removes all its files from a machine."""

from __future__ import annotations

import click
import pytest

from holdfast.cli import computetarget, terminal
from holdfast.hosts.replies import Inventory, ProjectRuns, Stored
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.machines import detach


def there(*runs: int, living: int = 0) -> Inventory:
    """`living` of the first project's runs are alive."""
    projects = tuple(ProjectRuns(f"p{index}", count, 0 if index else living) for index, count in enumerate(runs))
    return Inventory("/scratch/me/holdfast", (Stored("runs", 5),), projects)


@pytest.mark.parametrize(
    ("runs", "living", "sentence"),
    [
        ((), 0, "No run is there."),
        ((1,), 0, "1 run is there; none alive."),
        ((3,), 0, "3 runs are there; none alive."),
        ((1, 1), 0, "2 runs are there, of 2 projects; none alive."),
        ((3, 1), 2, "4 runs are there, of 2 projects; 2 alive."),
    ],
)
def test_how_many_runs_go_and_how_many_of_them_live_is_said_in_good_english(runs, living, sentence):
    assert computetarget._how_many_runs(there(*runs, living=living)) == sentence


@pytest.fixture
def attached(configure, monkeypatch):
    """The file of a target that must not be detached; commands are typed on a terminal."""
    monkeypatch.setattr(detach, "detach", lambda *_: pytest.fail("it was detached"))
    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    return configure("gpu1.compute", "type: remote\naddress: gpu1\n")


def test_the_question_names_the_folder_and_the_machine(monkeypatch):
    asked = []

    def refuse(text: str, **_: object) -> bool:
        asked.append(text)
        return False

    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    monkeypatch.setattr(click, "confirm", refuse)
    assert not computetarget._confirm_purge("gpu1", there(2), sure=False)
    assert asked == ["Remove all that Holdfast has in /scratch/me/holdfast on `gpu1`?"]


def test_a_purge_that_is_declined_is_no_interruption_and_removes_nothing(command, attached, monkeypatch):
    monkeypatch.setattr(detach, "inventory", lambda *_: there(2))
    monkeypatch.setattr(click, "confirm", lambda *_, **__: False)
    done = command("computetarget", "detach", "gpu1", "--purge")
    assert done.code == 251
    assert done.err.endswith("Nothing was done.\n")
    assert attached.exists()


@pytest.mark.parametrize("words", [[], ["--yes"], ["--yes", "--force"]], ids=" ".join)
def test_a_purge_under_living_runs_is_refused_without_a_question_naming_only_ways_that_work(
    command, attached, monkeypatch, words
):
    monkeypatch.setattr(detach, "inventory", lambda *_: there(3, living=2))
    monkeypatch.setattr(click, "confirm", lambda *_, **__: pytest.fail("it was asked"))
    done = command("computetarget", "detach", "gpu1", "--purge", *words)
    assert done.code == 246
    assert "Nothing is purged: 2 runs are still alive in /scratch/me/holdfast on `gpu1`." in done.err
    assert "cancelled where they were submitted" in done.err
    assert "--force" not in done.err


def test_what_else_is_wrong_in_a_file_does_not_keep_from_a_purge(command, configure, monkeypatch):
    configure("gpu1.compute", "type: remotedocker\naddress: gpu1\nnvidiaDocker: perhaps\nshmSize: [1]\n")
    asked = []

    def inventory(target: ComputeTarget, *_: object) -> Inventory:
        asked.append(target.address)
        return there(1)

    monkeypatch.setattr(detach, "inventory", inventory)
    monkeypatch.setattr(detach, "detach", lambda *_: iter([detach.TargetDetached(("gpu1.compute",), ())]))
    done = command("computetarget", "detach", "gpu1", "--purge", "--yes")
    assert done.code == 0, done.err
    assert asked == ["gpu1"]
    configure("gpu1.compute", "type: remotedocker\nnvidiaDocker: perhaps\n")
    assert command("computetarget", "detach", "gpu1", "--purge", "--yes").code == 241, "the place is unknown"
