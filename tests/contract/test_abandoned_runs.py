"""Runs whose machine is gone: abandoned here if a person says so, and resumed if the machine answers after all."""

from __future__ import annotations

import pytest

from holdfast.errors import FarSideError, HostKeyRefused, LoginNeeded, StateError, Unreachable
from holdfast.history.index import Index
from holdfast.model import Reason, Status
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.session import session_of
from holdfast.workbench.reach import events
from holdfast.workbench.records.cancel import abandon, try_to_ask
from kit.laptops import Box, ended
from kit.waiting import wait_for

DOWN = Unreachable("gpu1 cannot be reached: ssh: connect to host gpu1 port 22: No route to host")


def give_up(laptop, run):
    return abandon(laptop.project, try_to_ask(laptop.project, run, laptop.context), laptop.context)


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (DOWN, "No route to host"),
        (LoginNeeded("gpu1 refused the login."), "login needed"),
        (HostKeyRefused("The host key is another."), "host key refused"),
    ],
)
def test_a_run_whose_machine_cannot_be_asked_is_given_up_with_the_reason(laptop, boxes, trouble, why):
    run = laptop.start("gpu1")
    laptop.look()
    journal = (laptop.folders.path(run) / "journal.jsonl").read_bytes()
    boxes["gpu1"].trouble = trouble
    found = give_up(laptop, run)
    assert (found.status, found.ending.reason) == (Status.ABANDONED, Reason.ABANDONED)
    assert f"({why})" in found.ending.sentence()
    assert (laptop.folders.path(run) / "journal.jsonl").read_bytes() == journal
    boxes["gpu1"].connections.clear()
    assert (laptop.look(), boxes["gpu1"].connections) == ([], []), "no machine is asked about it any more"


def test_a_run_is_not_given_up_while_its_machine_answers(laptop, boxes):
    run = laptop.start("gpu1")
    with pytest.raises(StateError, match="gpu1 answers") as caught:
        give_up(laptop, run)
    assert f"holdfast cancel -r {run}" in caught.value.hint
    assert laptop.folders.why_abandoned(run) is None
    boxes["gpu1"].open_gate()
    laptop.look_until_ended(run)
    boxes["gpu1"].trouble = DOWN
    with pytest.raises(StateError, match="has ended already"):
        give_up(laptop, run)


def test_a_run_is_not_given_up_where_its_machine_answers_with_an_error(laptop, boxes):
    run = laptop.start("gpu1")
    boxes["gpu1"].trouble = FarSideError("internal", "Something is wrong there.")
    with pytest.raises(FarSideError, match="Something is wrong there"):
        give_up(laptop, run)
    assert laptop.folders.why_abandoned(run) is None


def install_anew(boxes):
    old = boxes["gpu1"]
    folder = old.folder.parent / "anew" / old.folder.name
    folder.mkdir(parents=True)
    boxes["gpu1"] = Box("gpu1", folder, "installed anew")


def test_another_machine_at_the_same_address_is_no_answer(laptop, boxes):
    run = laptop.start("gpu1")
    install_anew(boxes)
    assert "another machine answers" in give_up(laptop, run).ending.sentence()


def test_a_run_whose_target_was_detached_is_given_up_too(laptop):
    run = laptop.start("gpu1")
    (laptop.root / "aml_config" / "gpu1.compute").unlink()
    assert give_up(laptop, run).status is Status.ABANDONED
    assert Index(laptop.project.state_directory).unfinished() == ()


@pytest.mark.parametrize("has_ended", [False, True], ids=["goes on", "ended meanwhile"])
def test_what_the_machine_says_later_counts(laptop, boxes, has_ended):
    run = laptop.start("gpu1")
    laptop.look()
    boxes["gpu1"].trouble = DOWN
    give_up(laptop, run)
    boxes["gpu1"].trouble = None
    if has_ended:
        boxes["gpu1"].open_gate()
    last = '"ended"' if has_ended else '"started"'
    wait_for(lambda: last in journal_of(boxes["gpu1"], run), what=f"{last} on the box")
    laptop.look(only=frozenset((run,)))
    assert laptop.read(run).status is (Status.COMPLETED if has_ended else Status.RUNNING)
    assert [each.status for each in Index(laptop.project.state_directory).list()] == [laptop.read(run).status]
    assert laptop.folders.is_collected(run) is has_ended


def test_a_run_that_was_given_up_can_be_followed_to_its_end(laptop, boxes):
    run = laptop.start("gpu1")
    boxes["gpu1"].trouble = DOWN
    give_up(laptop, run)
    boxes["gpu1"].trouble = None
    boxes["gpu1"].open_gate()
    assert ended(Follower(session_of(laptop.project, run, laptop.context)).follow()).status is Status.COMPLETED


def test_a_machine_that_is_asked_about_another_run_says_what_became_of_one_that_was_given_up(laptop, boxes):
    run = laptop.start("gpu1")
    elsewhere = laptop.start("gpu2")
    for name in ("gpu1", "gpu2"):
        boxes[name].trouble = DOWN
    for each in (run, elsewhere):
        give_up(laptop, each)
    for name in ("gpu1", "gpu2"):
        boxes[name].trouble = None
    another = laptop.start("gpu1")
    boxes["gpu2"].connections.clear()
    assert set(laptop.look()) == {events.RunChanged(run), events.RunChanged(another)}
    assert laptop.read(run).status in (Status.PREPARING, Status.RUNNING)
    assert (len(boxes["gpu1"].connections), boxes["gpu2"].connections) == (1, []), "it is no reason to connect"
    assert laptop.read(elsewhere).status is Status.ABANDONED
    assert Index(laptop.project.state_directory).abandoned() == ((elsewhere, "gpu2"),)


def test_nothing_is_said_of_a_run_that_was_given_up_and_is_not_on_the_machine_that_answers(laptop, boxes):
    run = laptop.start("gpu1")
    install_anew(boxes)
    give_up(laptop, run)
    other = laptop.start("gpu1")
    assert laptop.look() == [events.RunChanged(other)]
    assert laptop.read(run).status is Status.ABANDONED
    boxes["gpu1"].open_gate()
    laptop.look_until_ended(other)


def journal_of(box, run):
    (file,) = box.folder.glob(f"runs/*/{run}/journal.jsonl")
    return file.read_text()
