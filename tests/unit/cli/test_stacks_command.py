"""`experiment stacks`: what it shows, and what it says if there is nothing to show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.errors import FarSideError
from holdfast.hosts.host import Local

STACK = 'Current thread 0x01 (most recent call first):\n  File "train.py", line 3 in load\x1b[2J\n'
PROCESSES = [
    {"pid": 7, "name": "python", "command": "python train.py", "state": "S", "stack": STACK, "why": ""},
    {"pid": 8, "name": "sh", "command": "sh", "state": "D", "stack": "", "why": "No signal."},
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
def stacks(monkeypatch, command, going_on):
    """`stacks(answer, *words)`: what `experiment stacks` of a living run shows for this answer of the far side."""

    def show(answer: object, *words: str, run: str = going_on) -> Any:
        far = Far(answer)
        monkeypatch.setattr(Local, "connect", lambda *_, **__: far)
        done = command("experiment", "stacks", "-r", run, *words)
        assert far.asked == ([("stacks", run)] if run == going_on else []), "one that has ended is not asked"
        return done

    return show


def test_processes_are_shown_with_their_stacks_and_the_others_with_the_reason(stacks):
    done = stacks({"processes": PROCESSES}, "-o", "table")
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


def test_of_a_long_command_the_program_and_the_script_are_shown(stacks, command):
    deep = f"/opt/{'environment/' * 8}bin/python -u /home/ada/.holdfast/{'runs/' * 9}work/train.py --rate=1/2/3"
    head = stacks({"processes": [{**PROCESSES[0], "command": deep}]}, "-o", "table").out.splitlines()[0]
    assert head == "7 python (sleeping): …/python -u …/train.py --rate=1/2/3"
    text = " ".join(command("experiment", "stacks", "--help").out.split())
    assert "faulthandler" in text and "`Current thread`" in text


def test_programs_get_all_of_it(stacks):
    shown = json.loads(stacks({"processes": PROCESSES}).out)
    assert (shown[0]["stack"], shown[0]["why"]) == (PROCESSES[0]["stack"], None)
    assert (shown[1]["stack"], shown[1]["why"]) == (None, PROCESSES[1]["why"])
    assert shown[2]["command"] == PROCESSES[2]["command"]
    assert stacks({"processes": PROCESSES}, "--query", "[].pid", "-o", "tsv").out.split() == ["7", "8", "9"]


def test_where_no_process_answers_that_is_said(stacks):
    done = stacks({"processes": PROCESSES[1:2]}, "-o", "table")
    assert (done.code, done.err) == (0, "No process of the run has a stack to show.\n")


def test_a_run_that_has_ended_is_not_asked(stacks, recorded):
    run_id = recorded.add()
    done = stacks({"processes": []}, run=run_id)
    assert (done.code, done.out) == (246, "")
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
def test_what_the_machine_refuses_is_said_with_a_remedy(stacks, going_on, kind, hint, code, remedy):
    done = stacks(FarSideError(kind, "It cannot be.", hint))
    assert done.code == code
    assert done.err.splitlines() == ["error: It cannot be.", remedy.format(run=going_on)]


def test_an_answer_that_makes_no_sense_is_no_traceback(stacks):
    assert stacks({"processes": [{"pid": "seven"}]}).code == 245
