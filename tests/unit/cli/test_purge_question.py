"""What is said and asked before everything of Holdfast's on a machine is removed."""

from __future__ import annotations

import click
import pytest

from holdfast.cli import computetarget, terminal
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.machines import leaving
from holdfast.workbench.machines.leaving import Inventory, ProjectRuns, Stored


def there(*runs: int, living: int = 0) -> Inventory:
    """`living` of the first project's runs are alive."""
    projects = tuple(ProjectRuns(f"p{index}", count, 0 if index else living) for index, count in enumerate(runs))
    return Inventory("/scratch/me/holdfast", (Stored("runs", 5),), projects)


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ((), "No run is there."),
        ((1,), "1 run is there; none alive."),
        ((3,), "3 runs are there; none alive."),
        ((1, 1), "2 runs are there, of 2 projects; none alive."),
    ],
)
def test_how_many_runs_go_is_said_in_good_english(runs, sentence):
    assert computetarget._how_many_runs(there(*runs)) == sentence


def test_how_many_of_them_live_is_said():
    assert computetarget._how_many_runs(there(3, 1, living=2)) == "4 runs are there, of 2 projects; 2 alive."


def test_the_question_names_the_folder_and_the_machine(monkeypatch):
    asked = []

    def refuse(text: str, **_: object) -> bool:
        asked.append(text)
        return False

    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    monkeypatch.setattr(click, "confirm", refuse)
    assert not computetarget._confirm_purge("gpu1", there(2), sure=False)
    assert asked == ["Remove all that Holdfast has in /scratch/me/holdfast on `gpu1`?"]


def test_a_purge_that_is_declined_is_no_interruption_and_removes_nothing(command, tmp_path, monkeypatch):
    (tmp_path / "aml_config").mkdir()
    file = tmp_path / "aml_config" / "gpu1.compute"
    file.write_text("type: remote\naddress: gpu1\n")
    monkeypatch.setattr(leaving, "inventory", lambda *_: there(2))
    monkeypatch.setattr(leaving, "detach", lambda *_: pytest.fail("it was detached"))
    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: False)
    done = command("computetarget", "detach", "gpu1", "--purge")
    assert done.code == 251
    assert done.err.endswith("Nothing was done.\n")
    assert file.exists()


@pytest.mark.parametrize("words", [[], ["--yes"], ["--yes", "--force"]], ids=" ".join)
def test_a_purge_under_living_runs_is_refused_unasked_naming_only_ways_that_work(command, tmp_path, monkeypatch, words):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "gpu1.compute").write_text("type: remote\naddress: gpu1\n")
    monkeypatch.setattr(leaving, "inventory", lambda *_: there(3, living=2))
    monkeypatch.setattr(leaving, "detach", lambda *_: pytest.fail("it was detached"))
    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: pytest.fail("it was asked"))
    done = command("computetarget", "detach", "gpu1", "--purge", *words)
    assert done.code == 246
    assert "Nothing is purged: 2 runs are still alive in /scratch/me/holdfast on `gpu1`." in done.err
    assert "cancelled where they were submitted" in done.err
    assert "--force" not in done.err


def test_what_else_is_wrong_in_a_file_does_not_keep_from_a_purge(command, tmp_path, monkeypatch):
    (tmp_path / "aml_config").mkdir()
    file = tmp_path / "aml_config" / "gpu1.compute"
    file.write_text("type: remotedocker\naddress: gpu1\nnvidiaDocker: perhaps\nshmSize: [1]\n")
    asked = []

    def inventory(target: ComputeTarget, *_: object) -> Inventory:
        asked.append(target.address)
        return there(1)

    monkeypatch.setattr(leaving, "inventory", inventory)
    monkeypatch.setattr(leaving, "detach", lambda *_: iter([leaving.Detached(("gpu1.compute",), ())]))
    done = command("computetarget", "detach", "gpu1", "--purge", "--yes")
    assert done.code == 0, done.err
    assert asked == ["gpu1"]
    file.write_text("type: remotedocker\nnvidiaDocker: perhaps\n")
    assert command("computetarget", "detach", "gpu1", "--purge", "--yes").code == 241, "nobody knows where"
