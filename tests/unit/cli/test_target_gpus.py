"""`computetarget gpus`: who uses what, once, in blocks, and on a screen that is left as it was found."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.cli import target_gpus
from holdfast.cli.gpu_users_page import draw
from holdfast.errors import HostError, Unreachable
from holdfast.workbench.machines import gpus
from holdfast.workbench.machines.gpus import parse

GIB = 1 << 30
ANSWER: dict[str, Any] = {
    "state": "ok",
    "problem": "",
    "code": None,
    "driver": "535.104.05",
    "cuda": "12.2",
    "time": 0.0,
    "devices": [
        {
            "index": 0,
            "state": "ok",
            "problem": "",
            "uuid": "GPU-1",
            "name": "Tesla K80",
            "utilization": 74,
            "memory_used": 8 * GIB,
            "memory_total": 11 * GIB,
            "temperature": 61,
            "power": 120.4,
            "leased_by": {"uid": 1, "user": "ada", "run": "iris_1", "pid": 7},
            "instances": [],
            "processes": [
                {"pid": 9, "user": "ada", "name": "python", "command": "python train.py", "memory": 2 * GIB}
                | {"kind": "compute", "whose": "mine", "run": "iris_1", "project": "iris"},
                {"pid": 10, "user": "bob", "name": "python", "command": None, "memory": None}
                | {"kind": "compute", "whose": "run", "run": "mnist_2", "project": None},
                {"pid": 11, "user": None, "name": None, "command": None, "memory": GIB}
                | {"kind": "graphics", "whose": "stranger", "run": None, "project": None},
            ],
        },
        {"index": 1, "state": "ok", "name": "Tesla K80", "processes": [], "leased_by": None},
        {"index": 2, "state": "lost", "problem": "GPU is lost", "processes": None},
        {
            "index": 3,
            "state": "ok",
            "name": "A100",
            "uuid": "GPU-4",
            "processes": None,
            "instances": [{"uuid": "MIG-1", "name": "1g.5gb", "leased_by": {"user": "", "run": "", "pid": None}}],
        },
    ],
    "queue": [{"gpus": 2, "pid": 77, "user": "bob", "waited": 200.0}, {"gpus": 1, "pid": 78, "user": None}],
}


def test_the_page_tells_own_runs_others_runs_and_strangers_apart():
    page = io.StringIO()
    draw(parse(ANSWER), page)
    assert page.getvalue().splitlines() == [
        "Driver     NVIDIA 535.104.05, CUDA up to 12.2",
        "GPU 0      Tesla K80, 74 % busy, 8.00 of 11.00 GiB, 61 °C, 120 W",
        "           GPU-1",
        "           leased by iris_1 (ada)",
        "           process 9 of ada: your run iris_1 (project iris), 2.00 GiB, python train.py",
        "           process 10 of bob: the run mnist_2, unknown, python",
        "           process 11: not a run of Holdfast's, 1.00 GiB, unknown",
        "GPU 1      Tesla K80, use unknown, unknown of unknown",
        "           unknown UUID",
        "           free",
        "GPU 2      unknown: lost, GPU is lost",
        "GPU 3      A100, use unknown, unknown of unknown",
        "           GPU-4",
        "           1g.5gb, MIG-1, leased by a run",
        "           processes: the driver does not tell",
        "Waiting 1  for 2 GPUs: bob (process 77), for 3m 20s by now",
        "Waiting 2  for 1 GPU: unknown (process 78)",
    ]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"state": "no-driver"}, "Driver  none from NVIDIA"),
        (
            {"state": "timed-out", "problem": "no answer", "driver": None},
            "Driver  NVIDIA of unknown version, timed-out: ",
        ),
        ({}, "GPUs    none"),
    ],
)
def test_a_machine_without_gpus_says_what_it_has(changes, shown):
    page = io.StringIO()
    draw(parse({**ANSWER, "devices": [], "queue": [], **changes}), page)
    assert shown in page.getvalue()


@pytest.mark.parametrize(
    "answer", [None, {}, {**ANSWER, "devices": {}}, {**ANSWER, "queue": [{}]}, {**ANSWER, "state": 1}]
)
def test_what_is_not_understood_is_an_error_of_the_machine(answer):
    with pytest.raises(HostError):
        parse(answer)


@pytest.fixture
def machine(monkeypatch):
    """A machine that answers; `machine.looks` says how often it was asked, `machine.open` whether one is connected."""

    class Machine:
        looks, open = 0, False
        ends: BaseException = KeyboardInterrupt()

        def watch(self, *_: object) -> Iterator[gpus.Look]:
            self.open = True
            try:
                while self.looks < 2:
                    self.looks += 1
                    yield parse(ANSWER)
                raise self.ends
            finally:
                self.open = False

    made = Machine()
    monkeypatch.setattr(gpus, "watch", made.watch)
    monkeypatch.setattr(target_gpus, "EVERY", 0.0)
    return made


def test_one_look_is_one_look_and_the_connection_is_closed(command, machine):
    outcome = command("computetarget", "gpus", "local")
    assert outcome.code == 0 and outcome.out.count("GPU 0 ") == 1, outcome.err
    assert (machine.looks, machine.open) == (1, False)
    shown = json.loads(command("computetarget", "gpus", "-n", "local", "-o", "json").out)
    assert shown["devices"][0]["processes"][0]["whose"] == "mine"
    query = "devices[].processes[?whose=='stranger'].pid[]"
    machine.looks = 0
    assert json.loads(command("computetarget", "gpus", "local", "--query", query).out) == [11]


def test_without_a_terminal_there_is_a_block_for_each_look_until_ctrl_c(command, machine):
    outcome = command("computetarget", "gpus", "local", "--watch")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("GPU 0 ") == 2
    assert "\x1b" not in outcome.out
    assert (machine.looks, machine.open) == (2, False), "all over one connection"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched_on(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, lines: int = 40) -> str:
    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.setattr(sys, "stdout", terminal)
    from holdfast.workbench.machines.gpus import watch

    target_gpus._watch_on_screen(watch(None, None))  # type: ignore[arg-type]  # the machine above asks for neither
    return terminal.getvalue()


def test_on_a_terminal_each_look_is_written_over_the_last_and_the_screen_is_given_back(machine, monkeypatch):
    shown = watched_on(Terminal(), monkeypatch)
    assert shown.startswith(target_gpus.BEGIN + "\x1b[H")
    screens, _, after = shown.partition(target_gpus.END)
    assert screens.count("\x1b[H") == 2 and "Ctrl-C" in screens
    assert after.splitlines()[0].startswith("Driver"), "what was seen last stays"


def test_a_screen_that_is_too_low_says_how_much_is_missing(machine, monkeypatch):
    shown = watched_on(Terminal(), monkeypatch, lines=10)
    first = shown.partition("\x1b[J")[0]
    assert first.count("\r\n") == 9
    assert "… 10 more lines" in first


def test_a_link_that_breaks_leaves_the_screen_as_it_was_too(machine, monkeypatch):
    machine.ends = Unreachable("gone")
    terminal = Terminal()
    with pytest.raises(Unreachable):
        watched_on(terminal, monkeypatch)
    assert terminal.getvalue().endswith(target_gpus.END)
