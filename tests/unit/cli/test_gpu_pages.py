"""What is shown of GPUs: the verdict as the last line, a column, the page of a run with its plot."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.cli import terminal
from holdfast.cli.gpu_plot import gpus_over_time
from holdfast.cli.screen import Screen as Shown
from holdfast.cli.tables import draw_page, fitting
from holdfast.farside.gpu.request import GpuRequest
from holdfast.frozen import replace
from holdfast.history.gpu_series import Series
from holdfast.history.journal_fold import PhaseBegan
from holdfast.history.records import read_run
from holdfast.model import GpuUse, Status, UseState, Verdict
from holdfast.presenting.run_page import rows
from holdfast.presenting.run_words import table
from holdfast.project.folder import Project
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.records import inspection
from holdfast.workbench.records.inspection import inspect
from holdfast.workbench.submitting.submit import dry_run
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.gpu_values import GIB, series
from kit.projects import home

from .conftest import BEGIN, Terminal

USED = Verdict(
    UseState.USED,
    "ok",
    "GPU used: Tesla K80 (GPU-1), 74 % mean",
    "",
    (GpuUse(0, "GPU-1", "Tesla K80", 74.0, 8 * GIB, 4.0, 0.8, True), GpuUse(1, "GPU-2", "Tesla K80", 0.0)),
    0.2,
    ((0.0, 4.0), (10.0, 100.0), (200.0, 210.0), (300.0, 305.0)),
    "utilisation",
)
NOT_USED = Verdict(UseState.NOT_USED, "cpu-build", "GPU NOT used: torch is a CPU build.", "Write `torch==2`.")
NOT_ASKED = Verdict(UseState.NOT_ASKED, "not-asked", "GPU not asked for.")


def judged(recorded: Any, verdict: Verdict | None, ticks: Sequence[int] = ()) -> str:
    """A run with this verdict, whose GPU 0 was this busy in each second."""
    from holdfast.codec import encode

    run_id: str = recorded.add()
    folder = recorded.folders.path(run_id)
    if verdict is not None:
        recorded.insert(run_id, {"e": "gpu", **encode(verdict)})
    if ticks:
        watched = [{"number": at, "uuid": f"GPU-{at + 1}", "name": "Tesla K80", "total": 4 * GIB} for at in (0, 1)]
        lines: list[Any] = [{"format": 1, "began": BEGIN + 3, "source": "nvml"}, {"devices": watched}]
        for at, busy in enumerate(ticks, 1):
            rows: list[Any] = [[0, busy, GIB, None, None, 0, 0, [], [], 0], [1, 0, 0, None, None, 0, 0, [], [], 0]]
            lines.append({"t": BEGIN + 3 + at, "d": rows})
        (folder / "gpu.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run_id


def draw(found, stream):
    draw_page(rows(found, gpus_over_time(found.run, found.gpus, stream)), stream)


def page(recorded: Any, run_id: str, stream: Any) -> str:
    draw(inspect(Project(recorded.root, "0" * 32, "iris", is_bare=False, home=home()), run_id), stream)
    if isinstance(stream, io.TextIOWrapper):
        stream.flush()
        stream = io.StringIO(stream.buffer.getvalue().decode(stream.encoding))
    text: str = stream.getvalue()
    return text


def test_the_page_of_a_run_shows_the_verdict_each_device_the_waiting_and_the_plot(recorded):
    shown = page(recorded, judged(recorded, USED, [0, 100]), io.StringIO()).splitlines()
    begin = next(number for number, line in enumerate(shown) if line.startswith("GPU "))
    assert [line[15:] for line in shown[begin : begin + 8]] == [
        "GPU used: Tesla K80 (GPU-1), 74 % mean",
        "GPU 0, Tesla K80 (GPU-1): 74 % mean, 8.00 GiB peak, first use after 4.0s, computed 80 % of the time, leased",
        "GPU 1, Tesla K80 (GPU-2): 0 % mean, not used",
        "While the script ran, no GPU worked for 20 % of the time.",
        "Longest without work: 1m 30s after 10.0s, 10.0s after 3m 20s, 5.0s after 5m 00s",
        f"GPU 0 busy    {'▁' * 30}{'█' * 30} peak 100 %",
        f"GPU 0 memory  {'▃' * 60} peak 1.0 of 4.0 GiB",
        f"{' ' * 14}0s{' ' * 26}1.0s{' ' * 24}2.0s",
    ]
    assert "GPU 1 busy" not in "\n".join(shown), "on a box of many, those of the run"


def test_of_many_devices_the_first_are_drawn_and_the_others_counted(recorded):
    found = inspect(Project(recorded.root, "0" * 32, "iris", is_bare=False, home=home()), judged(recorded, NOT_USED))
    stream = io.StringIO()
    draw(replace(found, gpus=tuple(series((1, 1), number=at) for at in range(8))), stream)
    assert "GPU 7 busy" in stream.getvalue() and "more GPUs" not in stream.getvalue()
    draw(replace(found, gpus=tuple(series((1, 1), number=at) for at in range(10))), stream)
    assert "GPU 8 busy" not in stream.getvalue()
    assert "… 2 more GPUs\n" in stream.getvalue()


@pytest.mark.parametrize(("verdict", "words"), [(USED, ["-o", "json"]), (USED, ["--query", "gpu"]), (NOT_ASKED, [])])
def test_what_is_not_drawn_is_not_read(recorded, command, monkeypatch, verdict, words):
    def read(*_: object) -> tuple[Series, ...]:
        raise AssertionError("it may be long")

    run_id = judged(recorded, verdict, [0, 100])
    monkeypatch.setattr(inspection, "read_series", read)
    outcome = command("history", "info", "-r", run_id, *(words or ["-o", "table"]))
    assert outcome.code == 0, outcome.err


def test_on_a_narrow_terminal_no_line_of_the_plot_is_broken(recorded, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    lines = page(recorded, judged(recorded, USED, [0, 100]), Terminal()).splitlines()
    busy = [line for line in lines if "GPU 0 busy" in line]
    assert len(busy) == 1 and "peak 100 %" in busy[0] and len(busy[0]) <= 70


def test_a_stream_that_cannot_take_blocks_gets_letters(recorded):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    shown = page(recorded, judged(recorded, USED, [0, 100]), stream)
    assert f"GPU 0 busy    {'_' * 30}{'#' * 30} peak 100 %" in shown


def test_what_was_not_used_is_on_the_page_with_its_remedy(recorded):
    shown = page(recorded, judged(recorded, NOT_USED), io.StringIO())
    assert "GPU            GPU NOT used: torch is a CPU build.\n               Write `torch==2`.\n" in shown


@pytest.mark.parametrize("verdict", [NOT_ASKED, None])
def test_a_run_that_asked_for_nothing_has_no_word_about_gpus(recorded, verdict):
    assert "GPU" not in page(recorded, judged(recorded, verdict), io.StringIO())


def test_the_column_is_there_where_a_run_has_something_in_it(recorded):
    plain, asked_nothing, used, unused = (
        read_run(recorded.folders, judged(recorded, each)) for each in (None, NOT_ASKED, USED, NOT_USED)
    )
    assert "GPU" not in [each.title for each in table([plain, asked_nothing], {}, 0.0).columns]
    found = table([plain, used, unused], {}, 0.0)
    assert found.columns[-1].title == "GPU"
    assert [row["gpu"] for row in found.rows] == ["", "used 74 %", "NOT used"]


def test_on_a_narrow_terminal_the_column_gives_way_to_what_tells_more(recorded):
    runs = [read_run(recorded.folders, judged(recorded, each)) for each in (USED, NOT_USED)]
    wanted = ["run_id", "script_name", "status", "gpu"]
    found = table(runs, {}, 0.0)
    shown = {
        width: [each.key for each in fitting(found.columns, found.by_worth(), found.rows, width)]
        for width in range(20, 200)
    }
    narrowest = min(width for width, keys in shown.items() if set(wanted) <= set(keys))
    assert shown[narrowest] == wanted, "before the target, the times and what only explains the status"
    assert "gpu" not in shown[narrowest - 1]


def test_queries_see_the_verdict(recorded, command):
    judged(recorded, USED)
    unused = judged(recorded, NOT_USED)
    query = "[?gpu.state=='not-used'].[run_id, gpu.reason]"
    assert command("history", "list", "--query", query, "-o", "tsv").out == f"{unused}\tcpu-build\n"
    assert "used 74 %" in command("history", "list", "-o", "table").out
    assert command("history", "list", "-o", "tsv").out.count("\t") == 2 * 7, "as before, for those who cut fields"


def ended(recorded: Any, verdict: Verdict | None, capfd: pytest.CaptureFixture[str]) -> list[str]:
    run = read_run(recorded.folders, judged(recorded, verdict))
    capfd.readouterr()
    Shown(None, frame=False).show(events.Ended(replace(run, notes=("a note",))))
    return capfd.readouterr().err.splitlines()


def test_the_verdict_is_the_last_word_of_a_run(recorded, capfd):
    assert ended(recorded, USED, capfd)[-2:] == ["note: a note", USED.sentence]
    assert ended(recorded, NOT_USED, capfd)[-3:] == ["note: a note", NOT_USED.sentence, "  Write `torch==2`."]
    twice = replace(NOT_USED, sentence="GPU NOT used: x. Write `torch==2`.")
    assert ended(recorded, twice, capfd)[-1] == twice.sentence
    for silent in (None, NOT_ASKED):
        assert ended(recorded, silent, capfd)[-1] == "note: a note"


NOTED = replace(NOT_USED, sentence="GPU NOT used: the build is for the CPU.", remedy="Write `torch==2`.")
NOTE = "The build is for the CPU. Write `torch==2`."


def test_what_a_note_has_said_is_not_said_again_with_the_verdict(recorded, capfd):
    run = replace(read_run(recorded.folders, judged(recorded, NOTED)), notes=(NOTE, "another"))
    screen = Shown(None, frame=False)
    screen.show(events.Noted(NOTE))
    screen.show(events.Ended(run))
    lines = capfd.readouterr().err.splitlines()
    assert (lines[0], lines[-2:]) == (f"note: {NOTE}", ["note: another", NOTED.sentence])
    Shown(None, frame=False).show(events.Ended(run))
    lines = capfd.readouterr().err.splitlines()
    assert lines[-3:] == ["note: another", NOTED.sentence, f"  {NOTED.remedy}"], "to who has not seen the note"
    assert f"note: {NOTE}" not in lines


@pytest.mark.parametrize("text", [NOTE, "The build is for the CPU. Write something else."])
def test_status_and_the_page_of_a_run_say_once_what_to_do_about_the_gpu(recorded, command, text):
    run_id = judged(recorded, NOTED)
    recorded.insert(run_id, {"e": "note", "text": text})
    for words in (("status", "-r", run_id), ("history", "info", "-r", run_id)):
        shown = " ".join(command(*words, "-o", "table").out.split())
        assert shown.count(NOTED.remedy) == 1, shown
        assert ("Write something else." in shown) is (text != NOTE)


def test_a_refusal_says_once_what_to_do(recorded, capfd):
    """The sentence about the run's end already has the remedy, in its own words."""
    run_id = judged(recorded, replace(NOT_USED, sentence="GPU NOT used: hidden.", remedy="Take it out."))
    refused = {"e": "ended", "reason": "gpu-required", "code": None, "detail": "It is hidden. Remove it."}
    recorded.insert(run_id, refused)
    Shown(None, frame=False).show(events.Ended(read_run(recorded.folders, run_id)))
    *_, status, last = capfd.readouterr().err.splitlines()
    assert (status.endswith(": It is hidden. Remove it."), last) == (True, "GPU NOT used: hidden.")
    shown = page(recorded, run_id, io.StringIO())
    assert "It is hidden. Remove it." in shown and "GPU NOT used: hidden." in shown
    assert "Take it out." not in shown


def test_colour_is_for_terminals_and_only_repeats_the_first_words(recorded, monkeypatch):
    run = read_run(recorded.folders, judged(recorded, NOT_USED))
    monkeypatch.delenv("NO_COLOR")
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    Shown(None, frame=False).show(events.Ended(run))
    assert "\x1b[1;31mGPU NOT used\x1b[0m: torch is a CPU build.\n" in shown.getvalue()


def test_a_verdict_cannot_steer_the_terminal(recorded, capfd):
    evil = replace(NOT_USED, sentence="GPU NOT used: \x1b[2J", remedy="do \x9b31m")
    assert ended(recorded, evil, capfd)[-2:] == ["GPU NOT used: \\x1b[2J", "  do \\x9b31m"]


def test_waiting_for_gpus_is_said_in_a_log_each_time_that_it_changes(capsys, monkeypatch):
    screen = Shown(None, frame=False)
    screen.show(phase_began("gpus", "waiting for 2 GPUs: 3 runs ahead"))
    screen.show(phase_began("gpus", "waiting for 2 GPUs: 1 run ahead"))
    assert capsys.readouterr().err == "Waiting for 2 GPUs: 3 runs ahead …\nWaiting for 2 GPUs: 1 run ahead …\n"
    screen.show(phase_began("gpus", "waiting: used by \x1b[2J\nerror: x"))
    assert capsys.readouterr().err == "Waiting: used by \\x1b[2J\\nerror: x …\n", "a process has any name"
    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    Shown(None, frame=False).show(phase_began("gpus", "waiting for 2 GPUs: 1 run ahead"))
    assert capsys.readouterr().err.startswith("\r\x1b[K  waiting for 2 GPUs: 1 run ahead (0 s)")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--gpus", "-1"], "`-1`"),
        (["--gpus", "two"], "`two`"),
        (["--min-gpu-memory", "0"], "`0`"),
        (["--gpus", "1", "--min-gpu-memory", "8"], "`8`"),
        (["--min-gpu-memory", "8GB"], "`--min-gpu-memory`"),
        (["--stop-if-idle", "0"], "`0`"),
        (["--quiet-after", "soon"], "`soon`"),
        (["--gpus", "0", "--require-gpu"], "`--gpus 0`"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_wishes_that_make_no_sense_are_errors_of_usage_with_a_remedy(command, tmp_path, words, value):
    (tmp_path / "train.py").write_text("")
    for how in (["--dry-run"], []):
        outcome = command("submit", *words, *how, "train.py")
        assert outcome.code == 240 and value in outcome.err
        assert "\n  " in outcome.err, "what to do instead"
    assert not (tmp_path / ".holdfast").exists(), "before there is an id"


def test_a_preparation_asks_for_no_gpu_whatever_the_file_says(tmp_path, configure):
    configure("x.compute", "type: docker\nbaseDockerImage: a\nnvidiaDocker: true\n")
    configure("x.runconfig", "Target: x\nFramework: Python\nGpus: 2\nRequireGpu: true\nStopIfIdle: 30m\n")
    configure("conda_dependencies.yml", "dependencies: []\n")
    (tmp_path / "train.py").write_text("")
    context = Context(tmp_path / "home", {}, tmp_path, tmp_path / "user")
    project = Project(tmp_path, "0" * 32, "iris", is_bare=False, home=home())
    plans = [
        next(each.plan for each in dry_run(project, request, context) if isinstance(each, events.Planned)).gpu
        for request in (
            SubmitRequest("train.py", run_configuration="x"),
            SubmitRequest(run_configuration="x", prepare_only=True),
        )
    ]
    assert (plans[0].gpus, plans[0].require) == (2, True)
    assert plans[1] == GpuRequest()


def test_the_plan_of_a_submission_has_the_request(command, tmp_path):
    (tmp_path / "train.py").write_text("")
    outcome = command("submit", "--gpus", "2", "--require-gpu", "--stop-if-idle", "1h", "--dry-run", "train.py")
    assert json.loads(outcome.out)["gpu"] == {
        "gpus": 2,
        "require": True,
        "min_memory": None,
        "stop_if_idle": 3600.0,
        "quiet_after": 600.0,
        "asked": True,
        "by": "`--gpus 2`",
    }


def test_the_status_of_a_run_has_its_verdict_and_the_latest_note(recorded, command):
    run_id = judged(recorded, NOT_USED)
    shown = command("status", "-r", run_id, "-o", "table").out
    assert "GPU NOT used: torch is a CPU build. Write `torch==2`." in shown
    recorded.insert(run_id, {"e": "note", "text": "first"}, {"e": "note", "text": "It hangs."})
    noted = command("status", "-r", run_id, "-o", "table").out
    assert "It hangs." in noted and "first" not in noted
    plain = command("status", "-r", judged(recorded, NOT_ASKED), "-o", "table").out
    assert "GPU" not in plain and "note" not in plain


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("waiting for 2 GPUs: GPU 0 is held by the run iris_1794774034208 of ada", "waiting for 2 GPUs"),
        ("installing: torch", "installing: torch"),
    ],
)
def test_a_run_that_waits_for_gpus_says_so_in_a_few_words_in_a_list(recorded, phase, words):
    run = replace(read_run(recorded.folders, recorded.add()), ending=None, status=Status.PREPARING)
    found = table([replace(run, phase=phase)], {}, 0.0)
    assert found.rows[0]["reason"] == words
    assert "reason" in [each.key for each in fitting(found.columns, found.by_worth(), found.rows, 80)]


def phase_began(name: str, text: str) -> events.Recorded:
    return events.Recorded("iris_1", PhaseBegan(0.0, name, text))
