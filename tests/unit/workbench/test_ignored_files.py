"""What is said about ignored files before a run, what is asked on a terminal, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.errors import UsageError
from holdfast.frozen import replace
from holdfast.plan import EarlierRun
from holdfast.project.configuration import load_configuration
from holdfast.project.data_wishes import DataWish
from holdfast.snapshots import ignored_groups
from holdfast.snapshots.ignored_answers import read_answers
from holdfast.snapshots.include_globs import Include
from holdfast.snapshots.take import Selection, take_snapshot
from holdfast.snapshots.warnings import Amount
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import product_of
from holdfast.workbench.submitting.expanded_glob import refuse_expanded
from holdfast.workbench.submitting.ignored_files import ALWAYS, NEVER, NOT_NOW, included, not_again, offer
from holdfast.workbench.submitting.job import Job
from holdfast.workbench.submitting.run_plan import Intent
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.projects import own_state, project_at


class Said(NamedTuple):
    """`globs` are those that the user agreed to."""

    texts: list[str]
    globs: tuple[str, ...] = ()


class Submitting:
    """A user in a project with ignored files."""

    def __init__(self, root: Path) -> None:
        self.root, self.state, self.asked = root, own_state(root), list[str]()
        for name in ("train.py", "chars/prepare.py", "chars/train.bin", "chars/meta.pkl", "w/a.pt", ".env"):
            self.write(name)
        (root / ".gitignore").write_text("*.bin\n*.pkl\nw/\n.env\n")

    def write(self, name: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text("x")

    def intent(self, *include: str, folder: str = "") -> Intent:
        project, configuration = project_at(self.root), load_configuration(project_at(self.root), None, None)
        context = Context(self.root / "home", {}, self.root, self.root)
        request, job = SubmitRequest("train.py", include=include), Job("train.py", (), (), folder=folder)
        return Intent(project, request, configuration, job, product_of(configuration.target, context))

    def say(self, *include: str, answers: list[str | None] | None = None, folder: str = "") -> Said:
        """`answers`: of a user at the terminal; None: there is none."""
        intent = self.intent(*include, folder=folder)
        context = Context(self.root / "home", {}, self.root, self.root)
        context = replace(
            context, choose=None if answers is None else lambda question, _: self.answer(question, answers)
        )
        snapshot = take_snapshot(self.root, self.state, None, Selection({}, included(intent)))
        return _heard(offer(intent, snapshot, context))

    def answer(self, question: str, answers: list[str | None]) -> str | None:
        self.asked.append(question)
        return answers.pop(0)

    def shipped(self) -> Include:
        return included(self.intent())


def _heard(happening: Generator[events.Event, None, tuple[str, ...]]) -> Said:
    texts: list[str] = []
    try:
        while True:
            event = next(happening)
            assert isinstance(event, (events.Noted, events.Warned))
            texts.append(event.text if isinstance(event, events.Noted) else event.message)
    except StopIteration as end:
        return Said(texts, end.value)


@pytest.fixture
def user(tmp_path: Path) -> Submitting:
    return Submitting(tmp_path)


def test_without_a_terminal_the_groups_are_named_once_with_the_options(user):
    (text,) = user.say().texts
    assert text.endswith(". To ship them: --include 'chars/*' --include w/")
    assert user.say() == Said([])
    user.write("chars/val.bin")
    assert "chars/{meta.pkl,train.bin,val.bin}" in user.say().texts[0]


def test_the_options_are_those_of_the_folder_where_the_user_is(user):
    assert user.say(folder="chars").texts[0].endswith("--include './*' --include ../w/")


def test_what_ships_already_is_not_named(user):
    (text,) = user.say("chars/*").texts
    assert "chars" not in text


def test_a_glob_that_the_shell_replaced_is_refused_before_the_wrong_script_runs():
    words = ("chars/prepare.py", ("chars/train.bin", "train.py", "--rate", "1"))
    expanded = SubmitRequest(*words, include=("chars/meta.pkl",))
    with pytest.raises(UsageError) as raised:
        refuse_expanded(expanded)
    assert raised.value.hint == "Quote it: holdfast submit --include 'chars/*' train.py"
    meant = SubmitRequest("chars/prepare.py", ("chars/train.bin", "--to", "x.py"), include=("chars/meta.pkl",))
    refuse_expanded(meant)


def test_a_folder_that_the_run_gets_as_data_is_not_named(user):
    intent = user.intent()
    run = replace(intent.configuration.run, data=(DataWish("/sets/w", "w"),))
    intent = replace(intent, configuration=replace(intent.configuration, run=run))
    snapshot = take_snapshot(user.root, user.state, None, Selection({}))
    (text,) = _heard(offer(intent, snapshot, Context(user.root / "home", {}, user.root, user.root))).texts
    assert "chars" in text
    assert "w/" not in text


def test_yes_ships_the_groups_with_every_run(user):
    said = user.say(answers=[ALWAYS])
    assert said.globs == ("chars/*", "/w/")
    assert said.texts[-1].endswith("write into .amlignore: `/chars/*`, `/w/`")
    assert user.shipped() == Include(agreed=("chars/*", "/w/"))
    assert user.say() == Said([])


def test_no_is_remembered_for_these_files(user):
    assert user.say(answers=[NOT_NOW]) == Said([])
    assert user.shipped() == Include()
    user.say(answers=[])
    user.write("new.bin")
    user.say(answers=[NOT_NOW])
    assert user.asked[1] == "1 ignored file stays here: new.bin, 1 B. Ship it?"


def test_never_is_remembered_for_all_files(user):
    user.say(answers=[NEVER])
    user.write("new.bin")
    assert user.say(answers=[]) == Said([])


def test_without_an_answer_the_run_goes_on_and_it_is_asked_again(user):
    assert user.say(answers=[None]) == Said([])
    user.say(answers=[NOT_NOW])
    assert len(user.asked) == 2


def test_a_large_folder_is_offered_as_data_and_nothing_is_asked_of_it(user, monkeypatch):
    monkeypatch.setattr(ignored_groups, "BETTER_AS_DATA", Amount(bytes=0, files=0))
    for name in ("chars/train.bin", "chars/meta.pkl"):
        (user.root / name).unlink()
    (text,) = user.say(answers=[]).texts
    assert text.endswith("To send the folder once per machine: --data w:w")


def test_an_answer_that_cannot_be_written_down_counts_for_this_run_only(user, monkeypatch):
    monkeypatch.setattr("holdfast.workbench.submitting.ignored_files.write_answers", lambda *_: False)
    said = user.say(answers=[ALWAYS])
    assert "Could not save your answer." in said.texts
    assert said.globs == ("chars/*", "/w/")
    assert read_answers(user.state).named == frozenset()


def test_who_goes_on_from_a_run_hears_of_the_ignored_files_that_it_had(tmp_path):
    submitting = Submitting(tmp_path)
    record = submitting.state / "runs" / "iris_0" / "configuration.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"run_configuration": {"include": ["chars/*", "/w/"]}}')
    intent = replace(submitting.intent("chars/*"), earlier=EarlierRun("iris_0", "p"))
    assert list(not_again(intent)) == [
        events.Noted("iris_0 had ignored files that this run lacks. To ship them: --include w/")
    ]
    assert not list(not_again(replace(submitting.intent("chars/*", "w/"), earlier=intent.earlier)))
    record.write_text('{"run_configuration": []}')
    assert not list(not_again(intent))
