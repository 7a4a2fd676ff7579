"""`experiment stacks`: what is shown, and what is said where there is nothing to show."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import FarSideError
from holdfast.hosts.local import Local

STACK = 'Current thread 0x01 (most recent call first):\n  File "train.py", line 3 in load\x1b[2J\n'
PROCESSES = [
    {"pid": 7, "name": "python", "command": "python train.py", "state": "S", "stack": STACK, "why": ""},
    {"pid": 8, "name": "sh", "command": "sh", "state": "D", "stack": None, "why": "No signal."},
    {"pid": 9, "name": "python", "command": "python " + "x" * 200, "state": "?", "stack": STACK, "why": "Late."},
]


class Far:
    """A far side that answers once."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    def __enter__(self) -> Far:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def request(self, operation: str, fields: Any) -> Any:
        self.asked.append((operation, fields["run"]))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def going_on(recorded: Any) -> str:
    return str(recorded.going_on())


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], Far]:
    def answering(answer: object) -> Far:
        made = Far(answer)
        monkeypatch.setattr(Local, "connect", lambda *_, **__: made)
        return made

    return answering


def test_processes_are_shown_with_their_stacks_and_the_others_with_the_reason(command, going_on, far):
    made = far({"processes": PROCESSES})
    done = command("experiment", "stacks", "-r", going_on, "-o", "table")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "7 python (sleeping): python train.py",
        "  Current thread 0x01 (most recent call first):",
        r'    File "train.py", line 3 in load\x1b[2J',
        "",
        "8 sh (waiting in the kernel): no stack. No signal.",
        f"9 python (?): python {'x' * 77} …",
        "  Late.",
        "  Current thread 0x01 (most recent call first):",
        r'    File "train.py", line 3 in load\x1b[2J',
        "",
    ]
    assert made.asked == [("stacks", going_on)]


def test_of_a_long_command_the_program_and_the_script_are_shown(command, going_on, far):
    deep = f"/opt/{'environment/' * 8}bin/python -u /home/ada/.holdfast/{'runs/' * 9}work/train.py --rate=1/2/3"
    far({"processes": [{**PROCESSES[0], "command": deep}]})
    head = command("experiment", "stacks", "-r", going_on, "-o", "table").out.splitlines()[0]
    assert head == "7 python (sleeping): …/python -u …/train.py --rate=1/2/3"
    text = " ".join(command("experiment", "stacks", "--help").out.split())
    assert "faulthandler" in text and "`Current thread`" in text


def test_programs_get_all_of_it(command, going_on, far):
    far({"processes": PROCESSES})
    done = command("experiment", "stacks", "-r", going_on)
    shown = json.loads(done.out)
    assert (shown[0]["stack"], shown[0]["why"]) == (PROCESSES[0]["stack"], None)
    assert (shown[1]["stack"], shown[1]["why"]) == (None, PROCESSES[1]["why"])
    assert shown[2]["command"] == PROCESSES[2]["command"]
    chosen = command("experiment", "stacks", "-r", going_on, "--query", "[].pid", "-o", "tsv")
    assert chosen.out.split() == ["7", "8", "9"]


def test_where_no_process_answers_that_is_said(command, going_on, far):
    far({"processes": PROCESSES[1:2]})
    done = command("experiment", "stacks", "-r", going_on, "-o", "table")
    assert (done.code, done.err) == (0, "No process of the run has a stack to show.\n")


def test_a_run_that_has_ended_is_not_asked(command, recorded, far):
    made, run_id = far({"processes": []}), recorded.add()
    done = command("experiment", "stacks", "-r", run_id)
    assert (done.code, done.out, made.asked) == (246, "", [])
    assert done.err.startswith(f"error: The run `{run_id}` has ended")
    assert done.err.endswith(f"\n  Its output: holdfast logs -r {run_id}\n")


@pytest.mark.parametrize(
    ("kind", "hint", "code", "remedy"),
    [
        ("ended", "", 246, "  How it ended: holdfast status -r {run}"),
        ("not-ready", "Wait.", 246, "  Wait."),
        ("busy", "Try again.", 245, "  Try again."),
    ],
)
def test_what_the_machine_refuses_is_said_with_a_remedy(command, going_on, far, kind, hint, code, remedy):
    far(FarSideError(kind, "It cannot be.", hint))
    done = command("experiment", "stacks", "-r", going_on)
    assert done.code == code
    assert done.err.splitlines() == ["error: It cannot be.", remedy.format(run=going_on)]


def test_an_answer_that_makes_no_sense_is_no_traceback(command, going_on, far):
    far({"processes": [{"pid": "seven"}]})
    assert command("experiment", "stacks", "-r", going_on).code == 245
