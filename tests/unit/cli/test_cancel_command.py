"""`cancel` of runs that have ended, whose machine is down, or is gone for good."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast.cli import terminal
from holdfast.cli.screen import Screen
from holdfast.errors import Unreachable
from holdfast.history.journal_fold import EndingBegan
from holdfast.hosts.ssh import Ssh
from holdfast.workbench.reach import events, link
from holdfast.workbench.records import cancel as canceling

ASKED = events.EndAsked("")


@pytest.fixture
def going_on(recorded: Any, configure: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run on a machine that cannot be reached."""
    configure("gpu1.compute", "type: remote\naddress: gpu1\n")

    def connect(*_: object, **__: object) -> None:
        raise Unreachable("gpu1 is off: ssh: No route to host", "Is it up?")

    monkeypatch.setattr(Ssh, "connect", connect)
    monkeypatch.setattr(link, "TRIES", (0.0,) * len(link.TRIES))
    return str(recorded.going_on(target="gpu1", target_type="remote"))


def test_a_machine_that_is_down_is_said_to_be_so_and_not_that_a_connection_was_lost(command, going_on):
    done = command("cancel", "-r", going_on)
    assert done.code == 245
    assert done.err.splitlines() == [
        f"Canceling {going_on} (train.py on gpu1) …",
        "error: gpu1 is off: ssh: No route to host",
        "  Is it up?",
        "  The run was not asked to end; try again later.",
        f"  If the machine is gone for good: holdfast cancel -r {going_on} --abandon",
    ]


def test_a_run_is_abandoned_when_that_is_confirmed(command, going_on, monkeypatch):
    unconfirmed = command("cancel", "-r", going_on, "--abandon")
    assert unconfirmed.code == 240
    assert "--yes" in unconfirmed.err
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: True)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: False)
    assert command("cancel", "-r", going_on, "--abandon").code == 251


def test_an_abandoned_run_is_shown_as_what_it_is(command, going_on):
    done = command("cancel", "-r", going_on, "--abandon", "-y")
    assert done.code == 0
    assert "Status: Abandoned. " in done.err and "(No route to host)" in done.err
    (listed,) = json.loads(command("history", "list", "-o", "json").out)
    assert (listed["status"], listed["reason"], listed["end_time_utc"]) == ("Abandoned", "abandoned", None)
    table = command("history", "list", "-o", "table")
    assert "Abandoned" in table.out
    assert "unreachable" not in table.out + table.err


def test_a_second_cancel_says_that_the_run_has_ended_already(command, recorded):
    run_id = recorded.add()
    file: Path = recorded.folders.path(run_id) / "journal.jsonl"
    file.write_text(file.read_text().replace('"exit-code"', '"canceled"'))
    recorded.insert(run_id, {"e": "ending", "cause": "cancel", "grace": 10}, at=3)
    done = command("cancel", "-r", run_id)
    said = "has ended already; nothing was canceled. Status: Canceled after 2.0s. The run was canceled."
    assert (done.code, done.err) == (0, f"{run_id} (train.py on local) {said}\n")


def test_the_run_is_named_before_it_is_asked_to_end_and_its_time_after_that(command, recorded, going_on, monkeypatch):
    monkeypatch.setattr(
        canceling, "cancel", lambda *_, **__: iter((ASKED, events.Recorded("iris_1", EndingBegan(0.0, "cancel", 10))))
    )
    named = f"Canceling {going_on} (train.py on gpu1) …\n"
    assert command("cancel").err == f"{named}It has 10s to finish.\n"
    assert command("cancel", "--grace", "3s").err == f"{named}It has 3s to finish.\n", "a time that was shortened"


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        ([ASKED], "Detached. The canceling goes on: {run}"),
        ([], "Interrupted while the run was being asked to end; it may go on: {run}"),
    ],
    ids=["asked", "not asked"],
)
def test_ctrl_c_says_what_becomes_of_the_canceling(command, going_on, monkeypatch, happened, said):
    def interrupted(*_: object, **__: object) -> Iterator[events.Event]:
        yield from happened
        raise KeyboardInterrupt

    monkeypatch.setattr(canceling, "cancel", interrupted)
    done = command("cancel", "-r", going_on)
    assert (done.code, done.err.splitlines()[1]) == (253, said.format(run=going_on))
    assert f"holdfast status -r {going_on}" in done.err


def test_a_run_that_is_being_canceled_is_shown_so(command, recorded, going_on):
    recorded.insert(going_on, {"e": "ending", "cause": "cancel", "grace": 600}, at=3)
    assert "being canceled: 10m to finish (0s left)" in command("status", "-r", going_on, "-o", "table").out
    found = json.loads(command("status", "-r", going_on, "-o", "json").out)
    assert (found["status"], found["phase"]) == ("Running", "being canceled: 10m to finish")


def test_a_connection_that_is_back_is_said_to_be(capfd):
    screen = Screen(None)
    screen.show(events.Reconnected("iris_1", "gpu1"))
    screen.show(events.ConnectionLost("iris_1", "it broke", 0.2))
    screen.show(events.Reconnected("iris_1", "gpu1"))
    screen.show(events.Reconnected("iris_1", "gpu1"))
    assert capfd.readouterr().err == "connection lost (it broke), trying again in 0.2 s …\nconnected again\n"


def test_without_a_run_the_only_one_that_has_not_ended_is_meant(command, recorded, going_on):
    recorded.add()
    done = command("cancel")
    assert done.code == 245
    assert f"holdfast cancel -r {going_on} --abandon" in done.err


def test_of_several_that_go_on_none_is_chosen(command, recorded, going_on):
    other = recorded.going_on()
    done = command("cancel")
    assert done.code == 240
    first, *offered = [re.sub(r"submitted \d+d \d+h ago", "AGE", line) for line in done.err.splitlines()]
    assert first == "error: 2 runs have not ended; which one is meant?"
    assert offered == [
        f"  train.py on gpu1, AGE: holdfast cancel -r {going_on}",
        f"  train.py on local, AGE: holdfast cancel -r {other}",
    ]


def test_where_none_goes_on_none_is_meant_and_those_that_were_given_up_are_offered(command, recorded, going_on):
    command("cancel", "-r", going_on, "--abandon", "-y")
    recorded.add()
    done = command("cancel")
    assert done.code == 240
    assert done.err.splitlines()[:3] == [
        "error: No run of this project is going on.",
        "  All of them: holdfast history list",
        "  1 run was given up; to ask its machine again, and end what goes on there:",
    ]
    assert done.err.endswith(f"ago: holdfast cancel -r {going_on}\n")
