"""`computetarget gpus`: who uses which GPU, once, in blocks, and on a screen that is restored at the end."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.cli import machine_commands, screen
from holdfast.cli.main import main
from holdfast.cli.tables import draw_page
from holdfast.errors import Unreachable
from holdfast.hosts.machine_report import GpuInventory
from holdfast.presenting.machine_page import user_rows
from holdfast.workbench.machines import usability
from kit.reports import full_look, look_of
from kit.waiting import wait_for

from .conftest import Terminal

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
            "lease": {"user": "ada", "run": "iris_1", "pid": 7},
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
        {"index": 1, "state": "ok", "name": "Tesla K80", "processes": [], "lease": None, "is_used": False},
        {"index": 2, "state": "lost", "problem": "GPU is lost", "processes": None},
        {
            "index": 3,
            "state": "ok",
            "name": "A100",
            "uuid": "GPU-4",
            "processes": None,
            "instances": [{"uuid": "MIG-1", "name": "1g.5gb", "lease": {"user": "", "run": "", "pid": None}}],
        },
    ],
    "queue": [
        {"gpus": 2, "pid": 77, "user": "bob", "run": "mnist_7", "waited": 200.0},
        {"gpus": 1, "pid": 78, "user": None},
    ],
}


def test_the_page_tells_own_runs_others_runs_and_strangers_apart():
    assert shown_of(ANSWER).splitlines() == [
        "Driver       NVIDIA 535.104.05, CUDA up to 12.2",
        "GPU 0        Tesla K80, 74 % busy, 8.00 of 11.00 GiB, 61 °C, 120 W",
        "             GPU-1",
        "             leased to run iris_1 of ada",
        "             process 9 of ada: your run iris_1 (project iris), 2.00 GiB, python train.py",
        "             process 10 of bob: the run mnist_2, unknown, python",
        "             process 11: not a run of Holdfast's, 1.00 GiB, unknown",
        "GPU 1        Tesla K80, use unknown, unknown of unknown",
        "             unknown UUID",
        "             free",
        "GPU 2        unknown: lost, GPU is lost",
        "GPU 3        A100, use unknown, unknown of unknown",
        "             GPU-4",
        "             1g.5gb, MIG-1: leased to a run",
        "             processes: the driver does not tell",
        "1st in line  run mnist_7 of bob, for 2 GPUs, since 3m 20s",
        "2nd in line  process 78 of unknown, for 1 GPU",
    ]


def shown_of(answer: dict[str, Any]) -> str:
    page = io.StringIO()
    draw_page(user_rows(look_of(answer)), page)
    return page.getvalue()


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"state": "no-driver"}, "Driver  none from NVIDIA"),
        ({"state": "timed-out", "problem": "x", "driver": None}, "Driver  NVIDIA of unknown version, timed-out: "),
        ({}, "GPUs    none"),
    ],
)
def test_a_machine_without_gpus_says_what_it_has(changes, shown):
    assert shown in shown_of({**ANSWER, "devices": [], "queue": [], **changes})


def changed(**changes: Any) -> dict[str, Any]:
    return {**ANSWER, "queue": [], "devices": [{**ANSWER["devices"][0], **changes}]}


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"is_used": True}, "in use without a lease: not handed out"),
        ({"is_used": False, "processes": []}, "free"),
        ({"is_used": None, "processes": None}, "not leased; whether it is used is not known"),
        ({"is_used": True, "lease": {"user": "ada", "run": "iris_1", "pid": 7}}, "leased to run iris_1 of ada"),
    ],
)
def test_each_device_says_whether_it_would_be_handed_out(changes, shown):
    lines = [line.strip() for line in shown_of(changed(**{"lease": None, **changes})).splitlines()]
    assert lines[3] == shown
    assert lines.count("free") == (shown == "free")


def test_of_many_processes_the_first_are_shown_and_the_others_counted():
    process = ANSWER["devices"][0]["processes"][0]
    ten = shown_of(changed(processes=[{**process, "pid": at} for at in range(10)]))
    assert "process 9 " in ten and "more processes" not in ten
    twelve = shown_of(changed(processes=[{**process, "pid": at} for at in range(12)]))
    assert "process 9 " in twelve and "process 10 " not in twelve
    assert "… 2 more processes: -o json\n" in twelve


def test_of_a_long_command_the_beginning_is_shown():
    process = ANSWER["devices"][0]["processes"][0]
    assert f" {'x' * 40}\n" in shown_of(changed(processes=[{**process, "command": "x" * 40}]))
    assert f" {'x' * 39}…\n" in shown_of(changed(processes=[{**process, "command": "x" * 41}]))


def test_a_look_at_no_known_time_is_shown_all_the_same(command, machine, watched):
    machine.answer = {**ANSWER, "time": None}
    assert command("computetarget", "gpus", "local", "--watch").out.startswith("time unknown\nDriver")
    machine.looks = 0
    assert "time unknown, every" in watched()


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine that answers; `machine.looks` is how often it was asked, `machine.open` whether a client is
    connected."""

    class Machine:
        looks, connections, open = 0, 0, False
        ends: BaseException = KeyboardInterrupt()
        answer = ANSWER
        before = staticmethod(lambda: None)

        def watch(self, *_: object) -> Iterator[GpuInventory]:
            self.open = True
            self.connections += 1
            self.before()
            try:
                while self.looks < 2:
                    self.looks += 1
                    yield look_of(self.answer)
                raise self.ends
            finally:
                self.open = False

    monkeypatch.chdir(tmp_path)
    made = Machine()
    monkeypatch.setattr(usability, "watch_gpus", made.watch)
    monkeypatch.setattr(machine_commands, "EVERY", 0.0)
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


def test_separated_by_tabs_there_is_a_line_of_names_and_numbers_for_each_gpu(command, machine):
    lines = [line.split("\t") for line in command("computetarget", "gpus", "local", "-o", "tsv").out.splitlines()]
    about = ["0", "GPU-1", "Tesla K80", "leased", "iris_1", "ada", "74"]
    assert lines[0] == [*about, *map(str, (8 * GIB, 11 * GIB, 61, 120.4, 3))]
    assert [line[3] for line in lines] == ["leased", "free", "lost", "leased"]
    assert {len(line) for line in lines} == {12}


def test_the_help_says_one_thing_about_pipes_and_that_a_name_is_needed(command):
    text = " ".join(command("computetarget", "gpus", "--help").out.split())
    assert "Default: a page (table), in a pipe too." in text
    assert "json in a pipe" not in text
    assert "[NAME]" not in text and "[OPTIONS] NAME" in text


def test_without_a_terminal_there_is_a_block_for_each_look_until_ctrl_c(command, machine):
    outcome = command("computetarget", "gpus", "local", "--watch")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("GPU 0 ") == 2
    assert "\x1b" not in outcome.out
    assert (machine.looks, machine.connections, machine.open) == (2, 1, False), "all over one connection"


def test_all_looks_are_asked_for_over_one_connection(monkeypatch):
    class Far:
        made = closed = 0

        def __init__(self) -> None:
            self.asked: list[str] = []

        def connect(self) -> Far:
            self.made += 1
            return self

        def __enter__(self) -> Far:
            return self

        def __exit__(self, *_: object) -> None:
            self.closed += 1

        def request(self, operation: str, fields: Any = None) -> Any:
            self.asked.append(operation)
            return full_look(ANSWER)

    far = Far()
    monkeypatch.setattr(usability, "host_of", lambda *_: far)
    looks = usability.watch_gpus(None, None)  # type: ignore[arg-type]  # the machine above asks for neither
    for _ in range(3):
        next(looks)
    assert (far.made, far.asked, far.closed) == (1, ["gpus"] * 3, 0)
    looks.close()
    assert far.closed == 1


@pytest.fixture
def watched(machine, monkeypatch):
    """`watched(*words)`: what a terminal got from `computetarget gpus local --watch`."""

    def watch(*words: str, lines: int = 40, columns: int = 100, expected: int = 0) -> str:
        shown = Terminal()
        monkeypatch.setenv("LINES", str(lines))
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", shown)
        assert main(["computetarget", "gpus", "local", "--watch", *words]) == expected
        return shown.getvalue()

    return watch


def test_on_a_terminal_each_look_is_written_over_the_last_and_the_screen_is_given_back(watched):
    shown = watched()
    assert shown.startswith(machine_commands.BEGIN + "\x1b[H")
    screens, _, after = shown.partition(machine_commands.END)
    assert screens.count("\x1b[H") == 2 and "Ctrl-C" in screens
    assert after.splitlines()[0].startswith("Driver"), "what was seen last stays"


def test_a_screen_that_is_too_low_says_how_much_is_missing(watched):
    shown = watched(lines=10)
    first = shown.partition("\x1b[J")[0]
    assert first.count("\r\n") == 9
    assert "… 10 more lines" in first


def test_a_screen_that_is_too_narrow_breaks_no_line(watched, monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    shown = watched(columns=30)
    first = shown.partition("\x1b[J")[0].removeprefix(machine_commands.BEGIN + "\x1b[H")
    lines = [re.sub(r"\x1b\[[\d;]*[mK]", "", line) for line in first.split("\r\n")]
    assert max(map(len, lines)) == 30
    assert "\x1b[1mDriver" in first, "colours take no room"


@pytest.mark.parametrize(("kind", "words"), [("dumb", ()), ("xterm", ("-o", "json")), ("xterm", ("--query", "cuda"))])
def test_there_is_no_other_screen_where_it_cannot_be_or_for_programs(watched, monkeypatch, kind, words):
    monkeypatch.setenv("TERM", kind)
    shown = watched(*words)
    assert "\x1b[?" not in shown
    if "json" in words:
        decoder = json.JSONDecoder()
        found: list[Any] = []
        while shown.strip():
            value, end = decoder.raw_decode(shown.lstrip())
            found, shown = [*found, value], shown.lstrip()[end:]
        assert [each["driver"] for each in found] == ["535.104.05"] * 2


def test_while_it_connects_that_is_said(machine, watched, monkeypatch):
    monkeypatch.setattr(screen, "EVERY", 0.01)
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    machine.before = lambda: wait_for(lambda: "asking local … (" in said.getvalue())
    shown = watched()
    assert said.getvalue().endswith("\r\x1b[K"), "and taken back"
    assert shown.count("\x1b[H") == 2


def test_a_link_that_breaks_leaves_the_screen_as_it_was_too(machine, watched):
    machine.ends = Unreachable("gone")
    assert watched(expected=Unreachable.exit_code).endswith(machine_commands.END)
