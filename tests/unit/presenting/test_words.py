"""Everything that can happen has words: this walks the closed sets of events, statuses, reasons, findings and errors,
so a new member without words fails here."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from holdfast import errors
from holdfast.environments import spec_findings
from holdfast.farside.environments import build_findings
from holdfast.farside.gpu.judge import reasons
from holdfast.history import journal_fold as journals
from holdfast.model import OUTCOMES, Ending, Reason, Run, Status, Submission, UseState, Verdict
from holdfast.presenting.environment_page import remark_line
from holdfast.presenting.event_lines import WORDS, lines
from holdfast.presenting.lines import Level, Role, error_line
from holdfast.presenting.machine_page import rows
from holdfast.presenting.run_words import STATUS_ROLES, VERDICT_ROLES, ended_by, ending_lines, status_mark, verdict_mark
from holdfast.project.problems import Severity
from holdfast.snapshots.large_trees import LargeFolder, LargeTree
from holdfast.workbench.environments.suitability import Remark
from holdfast.workbench.machines.machine_findings import MachineFinding
from holdfast.workbench.reach import events
from kit.reports import facts_of

ERRORS = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, errors.HoldfastError)]
SUBMISSION = Submission("iris_1", 1, "p", "iris", "train.py", (), "local", "local", "local", "a" * 64, 0.0, "g")
WITHOUT_WORDS = {
    events.StillWaiting,  # a clock goes on
    events.OutputArrived,  # the script's own
    events.Planned,  # plan_page
    events.EndAsked,
    events.RunChanged,
    journals.Created,
    journals.ContainerUsed,
    journals.ScriptExited,
    journals.ProcessesEnded,  # this and what follows is said when the run has ended
    journals.FilesListed,
    journals.GpusJudged,
    journals.RunEnded,
}
WITHOUT_A_RUN = {
    events.SnapshotProgressed,
    events.ReadingMuch,
    events.SnapshotTaken,
    events.Planned,
    events.StillWaiting,
    events.Sending,
    events.PortOpened,
    events.Removed,
    events.AskingHosts,
    events.HostSilent,
    events.Doing,
    events.Done,
    events.KeyShown,
}


def test_every_event_has_words():
    every = set(get_args(events.Event)) - {events.Recorded}
    of_journal = set(get_args(journals.JournalEvent))
    assert every | of_journal == {*WORDS, events.HostSilent}
    shown = {kind: example(kind) for kind in every} | {
        kind: events.Recorded("iris_1", example(kind)) for kind in of_journal
    }
    assert {kind for kind, event in shown.items() if not lines(event, 0.0)} == WITHOUT_WORDS


def test_every_event_about_a_run_has_its_id():
    about = {kind for kind in get_args(events.Event) if {"run_id", "run"} & set(vars(kind).get("__annotations__", ()))}
    assert set(get_args(events.Event)) - about == WITHOUT_A_RUN


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_word_and_a_colour(status):
    assert status_mark(Run(SUBMISSION, status), None, 0.0) == (status.value, STATUS_ROLES[status])


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_status_a_sentence_and_a_few_words(reason):
    run = Run(SUBMISSION, OUTCOMES[reason].status, Ending(reason, code=3, signal=9, detail="because"))
    first, *_ = ending_lines(run)
    assert first.text.startswith(f"Status: {run.status.value}. ") and run.how_it_ended() in first.text
    assert first.remedy or reason in (Reason.COMPLETED, Reason.CANCELED, Reason.NO_GPU)
    assert bool(ended_by(run)) == (reason is not Reason.COMPLETED)


@pytest.mark.parametrize("state", UseState)
def test_every_verdict_has_words_and_a_colour(state):
    found = verdict_mark(Verdict(state))
    assert (found is None) == (state is UseState.NOT_ASKED)
    assert state.words and isinstance(VERDICT_ROLES[state], Role)


def test_every_reason_of_a_verdict_has_words():
    named = {
        value for name, value in vars(reasons).items() if name[0] != "_" and name.isupper() and isinstance(value, str)
    }
    assert named == {*reasons.WORDS, *reasons.STATES}
    assert [each for each, words in reasons.WORDS.items() if not words.sentence] == [reasons.NOT_ASKED]


@pytest.mark.parametrize("severity", get_args(Severity))
@pytest.mark.parametrize("kind", sorted({*spec_findings.KINDS, *build_findings.KINDS}))
def test_every_kind_of_finding_is_said_with_its_place_and_remedy(kind, severity):
    line = remark_line(Remark(severity, kind, "torch", "It is gone.", "Write another.", "env.yml", 3))
    assert (line.text, line.remedy) == (f"env.yml:3: {severity}: It is gone.", "Write another.")


@pytest.mark.parametrize("stops", [True, False])
def test_every_finding_about_a_machine_is_said_with_its_remedy(stops):
    finding = MachineFinding("It is full.", "Make room.", stops)
    found = [text for title, text in rows(facts_of(), [finding]) if title == "Finding 1"]
    assert found == ["stops runs: It is full." if stops else "It is full.", "Make room."]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_words_and_a_code_of_its_own_range(kind):
    line, code = error_line(example(kind))
    assert (line.level, code) == (Level.ERROR, kind.exit_code)
    assert line.text and (line.remedy or kind is errors.ConfigurationError)
    assert code is not errors.ExitCode.INTERNAL or kind is errors.HoldfastError


def test_what_is_no_error_of_ours_is_a_defect():
    line, code = error_line(ZeroDivisionError("division by zero"))
    assert (line.text, line.mark and line.mark.text) == ("ZeroDivisionError: division by zero", "internal error")
    assert code is errors.ExitCode.INTERNAL


EXAMPLES = {
    "float": 1.5,
    "Seconds": 1.5,
    "int": 1 << 30,
    "bool": True,
    "bytes": b"x",
    "tuple": ("a",),
    "Sequence": ["a"],
    "Iter": ["a"],
}


def example(kind):
    """An instance of this class, with a value in every field."""
    is_error = issubclass(kind, Exception)
    fields = inspect.signature(kind).parameters.values() if is_error else ()
    named = {each.name: str(each.annotation) for each in fields} if is_error else vars(kind).get("__annotations__", {})
    return kind(**{name: value(name, annotation) for name, annotation in named.items()})


def value(name, annotation):
    if name == "verdict":
        return Verdict(UseState.USED)
    if name == "tree":
        return LargeTree(1, 2, (LargeFolder("data/", 1, 2),))
    if name == "run":
        return Run(SUBMISSION, Status.COMPLETED, Ending(Reason.COMPLETED))
    return next((made for word, made in EXAMPLES.items() if annotation.startswith(word)), name)
