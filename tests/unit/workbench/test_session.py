"""One run and its host: who owns the connection, who may write, and what is recorded if the host lacks the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ElsewhereError, Unreachable
from holdfast.history.run_folder import RunFolders
from holdfast.model import Place, Reason, Submission
from holdfast.project.folder import Project
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.link import TRIES
from kit.projects import home, own_state

RUN = "iris_1"
CREATED = {"t": 1.0, "e": "created", "format": 1, "host": "gpu1", "user": "ada"}
HERE = {"machine": "m1", "folder": "/far", "host": "gpu1"}


class Far:
    """Answers each operation with a prepared answer."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "hello": {**HERE, "home": "/far", "boot": "b", "time": 0.0, "executable": "python", "entry": "e"},
            "follow": {"missing": {}, "alive": None},
            "give-up": {"given_up": True},
            **answers,
        }
        self.sent: list[tuple[str, Any]] = []
        self.is_open = True

    def send(self, operation: str, fields: Any = None, body: bytes = b"") -> int:
        self.sent.append((operation, fields))
        return len(self.sent) - 1

    def answer(self, number: int) -> Any:
        return self.answers[self.sent[number][0]]

    def request(self, operation: str, fields: Any = None) -> Any:
        return self.answer(self.send(operation, fields))

    def close(self) -> None:
        self.is_open = False

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.sent]


class FakeHost:
    name, is_here = "gpu1", False

    def __init__(self, far: Far) -> None:
        self.far = far
        self.may_ask: list[bool] = []

    def connect(self, may_ask: bool = True) -> Any:
        self.may_ask.append(may_ask)
        return self.far


@pytest.fixture
def far() -> Far:
    return Far()


@pytest.fixture
def host(far: Far) -> FakeHost:
    return FakeHost(far)


@pytest.fixture
def session(tmp_path: Path, host: Any) -> Session:
    project = Project(tmp_path, "p" * 32, "iris", False, home=home())
    folders = RunFolders(own_state(tmp_path))
    folders.claim(RUN)
    what = ("train.py", (), "local", "gpu1", "remote", "0" * 64)
    folders.commit(RUN, Submission(RUN, 1, project.id, "iris", *what, created=1.0, generation="g1"), {}, {})
    return Session(project, RUN, host, Context(tmp_path, {}, tmp_path, tmp_path, lambda: 100.0))


def write_journal(session: Session, *records: dict[str, Any]) -> None:
    (session.folder / "journal.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))


def test_only_the_first_connection_may_ask_for_a_password(session, host, far):
    assert session.connection() is session.connection() is far
    session.disconnect()
    assert not far.is_open
    session.connection()
    assert host.may_ask == [True, False]


def test_a_shared_connection_is_closed_by_its_owner_and_an_adopted_one_by_the_session(session, host):
    shared, adopted = Far(), Far()
    for use, given in ((session.share, shared), (session.adopt, adopted)):
        use(given)
        assert session.connection() is given
        session.disconnect()
    assert (shared.is_open, adopted.is_open) == (True, False)
    assert host.may_ask == []


def test_one_session_at_a_time_may_write_and_the_lock_and_the_connection_end_with_the_block(session, far):
    other = Session(session.project, RUN, session.host, session.context)
    with session.writing() as mine, other.writing() as also:
        assert (mine, also) == (session.is_writer, other.is_writer) == (True, False)
        session.connection()
    assert not far.is_open
    with other.writing() as mine:
        assert mine


def test_the_answer_to_what_was_asked_before_is_taken_and_asked_for_once(session, far):
    session.ask()
    assert not session.was_reached
    assert session.heard().missing == {}
    assert session.was_reached
    session.heard()
    assert far.operations == ["follow", "follow"]
    (asked,) = far.sent[0][1]["runs"]
    assert asked == {"project": "p" * 32, "run": RUN, "have": {}}


def test_a_run_that_is_heard_of_again_is_not_given_up_any_more(session, far):
    session.folders.write_abandoned(RUN, "Connection refused", 50.0)
    far.answers["follow"] = {"missing": {RUN: "not-found"}, "alive": None}
    session.heard()
    assert session.read().ending is not None
    far.answers["follow"] = {"missing": {}, "alive": None}
    session.heard()
    assert session.read().ending is None


@pytest.mark.parametrize(("machine", "folder"), [("m2", "/far"), ("m1", "/other")])
def test_nothing_is_settled_where_another_place_answers(session, far, machine, folder):
    session.folders.write_place(RUN, "gpu1", Place(machine, folder, "gpu1"))
    write_journal(session, CREATED)
    with pytest.raises(ElsewhereError):
        session.settle_missing()
    assert session.read().ending is None
    assert far.operations == ["hello"]


def test_a_run_that_was_there_is_lost_and_one_that_never_was_must_not_start_any_more(session, far):
    session.folders.write_place(RUN, "gpu1", Place("m1", "/far", "gpu1"))
    session.settle_missing()
    assert far.sent[-1] == ("give-up", {"project": "p" * 32, "run": RUN, "generation": "g1", "detail": ""})
    assert session.read().ending is None, "the host records it"
    write_journal(session, CREATED)
    session.settle_missing()
    assert far.operations == ["hello", "give-up", "hello"]
    assert session.read().ending.reason is Reason.LOST


@pytest.mark.parametrize(("seconds", "left"), [((), None), (((90.0, 30.0),), 20.0), (((5.0, 3.0), (90.0, 5.0)), 0.0)])
def test_the_time_that_a_run_has_to_finish_is_that_of_the_last_request(session, seconds, left):
    asked = [{"t": time, "e": "ending", "cause": "cancel", "grace": grace} for time, grace in seconds]
    write_journal(session, CREATED, *asked)
    assert session.time_to_finish() == left


@pytest.mark.parametrize(
    ("is_here", "is_followed", "tries"), [(False, True, 50), (False, False, len(TRIES)), (True, True, len(TRIES))]
)
def test_only_a_run_that_is_followed_on_another_machine_is_waited_for_without_end(session, is_here, is_followed, tries):
    session.host.is_here = is_here
    patience, error = session.patience(is_followed), Unreachable("off", "Is it up?")
    for _ in range(tries):
        patience.pause(error)
    if tries == len(TRIES):
        with pytest.raises(Unreachable) as caught:
            patience.pause(error)
        hint = f"Is it up?\nThe run goes on. Follow it again: holdfast logs -f -r {RUN}"
        assert caught.value.hint == hint
