"""How events and file contents are shown: long lines are shortened, control characters removed."""

from __future__ import annotations

import io
import sys
import time
from types import SimpleNamespace

import pytest

from holdfast.cli import terminal
from holdfast.cli.info_command import draw_comparison
from holdfast.cli.screen import Screen
from holdfast.errors import Unreachable
from holdfast.frozen import replace
from holdfast.history.journal_fold import PhaseBegan
from holdfast.history.records import read_run
from holdfast.history.run_differences import Comparison
from holdfast.workbench.reach import events
from holdfast.workbench.records.inspection import CodeDifference, RunComparison


@pytest.fixture
def last_line(monkeypatch):
    """`last_line(columns, screen, *events)`: the terminal's last line after these events."""

    def show(columns: int, screen: Screen, *happened: events.Event) -> str:
        shown = io.StringIO()
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
        monkeypatch.setattr(sys, "stderr", shown)
        for event in happened:
            screen.show(event)
        return shown.getvalue().rpartition("\x1b[K")[2]

    return show


@pytest.mark.parametrize("columns", [80, 50, 20])
def test_a_long_reason_is_cut_before_what_happens_next(last_line, columns):
    reason = "ssh: connect to host " + "gpu1.example.org " * 9
    lost = [events.ConnectionLost("iris_1", reason, seconds) for seconds in (4.0, 8.0)]
    shown = last_line(columns, Screen(None), *lost)
    assert len(shown) < columns
    assert shown.startswith("connection lost"[: columns - 1])
    assert shown.endswith("…), trying again in 8 s …") is (columns != 20)


@pytest.mark.parametrize("columns", [200, 60, 30])
def test_of_a_long_phase_the_seconds_are_not_cut(last_line, columns):
    phase = phase_began("gpus", "waiting: GPU 0 is held by the run iris_1794774034208 of ada; GPU 1 too")
    shown = last_line(columns, Screen(None, frame=False, age=3600.0), phase)
    assert len(shown) < columns
    assert shown.startswith("  waiting: GPU 0") and shown.endswith(" (3600 s)")
    assert ("…" in shown) is (columns != 200)


def test_what_is_in_a_file_does_not_steer_the_terminal():
    page = io.StringIO()
    code = CodeDifference(changed=("a.py",), diff="--- a.py\n+++ a.py\n@@ -1 +1 @@\n-\tx\n+\ty\x1b[2J\x9b31m\n")
    draw_comparison(RunComparison(Comparison("a", "b", (), (), (), (), ()), code), False, page)
    draw_comparison(RunComparison(Comparison("a", "b", (), (), (), (), ()), code), True, page)
    assert not {"\x1b", "\x9b"} & set(page.getvalue())
    assert page.getvalue().count("+\ty\\x1b[2J\\x9b31m\n") == 2


def test_many_warnings_are_counted_and_a_check_shows_them_all(command, configure, monkeypatch, tmp_path):
    def unreachable(*_: object) -> None:
        raise Unreachable("It is off.")

    configure("built.compute", "type: local\nuserManagedEnvironment: false\n")
    configure("built.runconfig", "Target: built\nFramework: Python\n")
    (tmp_path / "train.py").write_text("")
    index = '[[tool.uv.index]]\nname = "n%d"\nurl = "https://h.example/%d"\nexplicit = true\n'
    indexes = "".join(index % (each, each) for each in range(30))
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\nversion = '1'\n{indexes}")
    outcome = command("submit", "--dry-run", "-c", "built", "-d", "pyproject.toml", "train.py")
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("is asked for every package") == 20
    assert "10 more like these." in outcome.err
    monkeypatch.setattr("holdfast.workbench.environments.suitability._look", unreachable)
    page = command("environment", "check", "-c", "built", "-d", "pyproject.toml", "-o", "table")
    assert page.out.count("is asked for every package") == 30, page.err


@pytest.mark.parametrize(
    ("phases", "shown"),
    [
        (["image", "image", "environment"], "Fetching the image …\nPreparing the environment …\n"),
        (["container", "environment"], "Preparing the environment …\n"),
        (["files", "script"], ""),
    ],
)
def test_what_takes_long_before_the_script_is_said_once(capsys, phases, shown):
    screen = Screen(None, frame=False)
    for name in phases:
        screen.show(phase_began(name, "3 of 8 layers"))
    assert capsys.readouterr().err == shown


@pytest.fixture
def clock(monkeypatch):
    """The screen's time, in `clock.now`."""
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


def test_in_a_log_what_takes_minutes_is_seen_to_be_alive(capsys, clock):
    screen = Screen(None, frame=False)
    for _ in range(130):
        clock.now += 1
        screen.show(events.Sending(round(clock.now - 1000) * 1000, 130_000))
    screen.show(phase_began("environment", "3 of 8 packages"))
    for _ in range(130):
        clock.now += 1
        screen.show(events.StillWaiting())
    assert capsys.readouterr().err.splitlines() == [
        "sending files: 61.0 kB of 130 kB",
        "sending files: 121 kB of 130 kB",
        "Preparing the environment …",
        "  3 of 8 packages (190 s)",
        "  3 of 8 packages (250 s)",
    ]


def test_in_a_log_a_transfer_after_hours_of_work_is_not_announced_and_no_line_of_the_script_is_cut(capsys, clock):
    screen = Screen(sys.stdout, frame=False)
    for _ in range(3):
        clock.now += 7200
        screen.show(events.Fetched("iris_1", "r_1", 1_000_000, 31_500_000))
    screen.show(events.OutputArrived("iris_1", b"epoch 1: ...."))
    for _ in range(70):
        clock.now += 1
        screen.show(events.Fetched("iris_1", "r_1", 2_000_000, 31_500_000))
    screen.show(events.OutputArrived("iris_1", b".... done\n"))
    assert tuple(capsys.readouterr()) == ("epoch 1: ........ done\n", "")
    screen.show(events.Fetched("iris_1", "r_1", 3_000_000, 31_500_000))
    assert capsys.readouterr().err == "fetching outputs: 3.0 MB of 31.5 MB\n"


def test_in_a_log_a_run_that_waits_for_a_gpu_does_not_seem_to_build(capsys, clock):
    screen = Screen(None, frame=False)
    screen.show(phase_began("environment", "3 of 8 packages"))
    screen.show(phase_began("gpus", "waiting for a GPU"))
    clock.now += 600
    screen.show(events.StillWaiting())
    assert capsys.readouterr().err == "Preparing the environment …\nWaiting for a GPU …\n"


def test_a_note_that_was_shown_when_it_came_is_not_shown_again_at_the_end(recorded, capfd):
    run = replace(read_run(recorded.folders, recorded.add()), notes=("seen", "only at the end"))
    screen = Screen(None)
    screen.show(events.Noted("seen"))
    screen.show(events.Ended(run))
    shown = capfd.readouterr().err
    assert (shown.count("note: seen"), shown.count("note: only at the end")) == (1, 1)


@pytest.mark.parametrize(("shows_output", "is_led_there"), [(True, False), (False, True)])
def test_only_who_has_not_seen_the_output_is_led_to_it(recorded, capfd, shows_output, is_led_there):
    run = read_run(recorded.folders, recorded.add())
    Screen(sys.stdout if shows_output else None, frame=True).show(events.Ended(run))
    shown = capfd.readouterr().err
    assert "exit code 3" in shown
    assert ("holdfast logs -r" in shown) is is_led_there


def phase_began(name: str, text: str) -> events.Recorded:
    return events.Recorded("iris_1", PhaseBegan(0.0, name, text))
