"""What is said and asked before everything of Holdfast's on a machine is removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast.cli import computetarget, terminal
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.machines import leaving
from holdfast.workbench.machines.leaving import Inventory, ProjectRuns, Stored
from holdfast.workbench.surroundings import surroundings


def there(*runs: int) -> Inventory:
    projects = tuple(ProjectRuns(f"p{index}", count, 0) for index, count in enumerate(runs))
    return Inventory("/scratch/me/holdfast", (Stored("runs", 5),), projects)


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ((), "No run is there."),
        ((1,), "1 run is there."),
        ((3,), "3 runs are there."),
        ((1, 1), "2 runs are there, of 2 projects."),
    ],
)
def test_how_many_runs_go_is_said_in_good_english(runs: tuple[int, ...], sentence: str) -> None:
    assert computetarget._whose_runs(there(*runs)).startswith(sentence)


def test_the_question_names_the_folder_and_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(text: str, **_: object) -> bool:
        asked.append(text)
        return False

    monkeypatch.setattr(leaving, "inventory", lambda *_: there(2))
    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    monkeypatch.setattr(click, "confirm", refuse)
    assert not computetarget._confirm_purge(ComputeTarget("gpu1", "remote"), surroundings(), sure=False)
    assert asked == ["Remove all that Holdfast has in /scratch/me/holdfast on `gpu1`?"]


def test_a_purge_that_is_declined_is_no_interruption_and_removes_nothing(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
