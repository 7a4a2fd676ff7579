"""A preparation is found again and shows what it is; so does a run that ended at its build."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.history.run_folder import RunFolders
from holdfast.model import Submission
from holdfast.workbench.reach import events
from kit.projects import own_state

WHY = "there is no package `numpyy`."


@pytest.fixture
def add(tmp_path: Path) -> Callable[..., str]:
    """`add(script, reason)`: a fetched run of this project that ended for this reason."""
    folders = RunFolders(own_state(tmp_path))

    def make(script: str, reason: str, said: str = "") -> str:
        begin = 1_521_077_190.0 + len(folders.all_ids())
        run_id = folders.reserve("iris", begin)
        submission = Submission(run_id, 1, "p", "iris", script, (), "local", "local", "local", "a" * 64, begin, "g")
        folders.commit(run_id, submission, {"format": 1}, {"run": {"Framework": "Python"}})
        folder = folders.path(run_id)
        ended = {"t": begin + 1, "e": "ended", "reason": reason, "code": 0, "signal": None, "detail": WHY}
        (folder / "journal.jsonl").write_text(json.dumps({"t": begin, "e": "created"}) + f"\n{json.dumps(ended)}\n")
        (folder / "collected.json").write_text("{}")
        (folder / "control_log").write_text(said)
        return run_id

    return make


def test_a_preparation_says_its_id_before_anything_else(monkeypatch, command):
    def submit(*_: Any, **__: Any) -> Iterator[events.Event]:
        yield events.RunCreated("p_1")
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.workbench.submitting.submit.submit", submit)
    said = command("experiment", "prepare").err
    assert said.startswith("RunId: p_1\n")
    assert "holdfast status -r p_1" in said


def test_the_installers_words_of_the_newest_are_shown_without_its_id(add, command):
    add("train.py", "completed", "of the run\n")
    add("", "preparation", "of the preparation\n")
    assert command("logs", "--control").out == "of the preparation\n"


@pytest.mark.parametrize(
    ("reason", "installer_said", "hints"),
    [
        ("preparation", "no such package\n", ["The installer's own words: holdfast logs -r {run} --control"]),
        ("canceled", "collecting\n", ["What was done before that: holdfast logs --control -r {run}"]),
        ("canceled", "", []),
    ],
)
def test_logs_of_a_script_that_never_started_say_why_there_are_none(add, command, reason, installer_said, hints):
    run_id = add("train.py", reason, installer_said)
    shown = command("logs", "-r", run_id)
    why, *others = shown.err.splitlines()
    assert (shown.code, shown.out) == (0, "")
    assert why.startswith(f"The script was not started. Status: {'Canceled' if reason == 'canceled' else 'Failed'}. ")
    assert others == [f"  {each.format(run=run_id)}" for each in hints]
    assert command("logs", "--control", "-r", run_id)[1:] == (installer_said, "")


def test_a_preparation_has_no_script_that_could_have_ended(add, command):
    run_id = add("", "completed")
    for words in (("status", "-o", "json"), ("history", "info", "-o", "json"), ("history", "info", "-o", "table")):
        said = command(*words, "-r", run_id).out
        assert "environment is ready" in said and "The script ended" not in said


def test_the_environment_of_a_run_that_failed_in_its_build_is_not_there(add, command, tmp_path):
    (tmp_path / "train.py").write_text("")
    run_id = add("train.py", "preparation")
    outcome = command("submit", "--dry-run", "--environment-of", run_id, "train.py")
    assert outcome.code == 246
    assert WHY in outcome.err
    assert f"holdfast logs -r {run_id} --control" in outcome.err


@pytest.mark.parametrize(("reason", "why"), [("preparation", WHY), ("canceled", "canceled")])
def test_a_shell_of_a_run_that_ended_in_its_build_says_how(add, command, reason, why):
    run_id = add("train.py", reason)
    outcome = command("experiment", "shell", "-r", run_id, "true")
    assert outcome.code == 246
    assert f"`{run_id}` ended before its script began" in outcome.err and why in outcome.err


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """The environments that were entered, and the commands to run there."""
    found: list[tuple[str, tuple[str, ...]]] = []

    def enter(_host: Any, name: str, words: tuple[str, ...], _context: Any) -> int:
        found.append((name, words))
        return 0

    monkeypatch.setattr("holdfast.workbench.machines.shell_session.enter_environment", enter)
    return found


def test_two_dashes_may_stand_before_the_command(entered, command):
    assert command("environment", "shell", "0123", "--", "python", "--", "-V").code == 0
    assert command("environment", "shell", "0123", "python", "-V").code == 0
    assert command("environment", "shell", "0123", "--").code == 0
    assert entered == [("0123", ("python", "--", "-V")), ("0123", ("python", "-V")), ("0123", ())]


def test_an_option_after_the_id_is_told_where_it_belongs(entered, command):
    outcome = command("environment", "shell", "0123", "-t", "gpu1", "--", "python")
    assert outcome.code == 240
    assert "holdfast environment shell -t gpu1 0123" in outcome.err
    assert entered == []
