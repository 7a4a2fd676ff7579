"""`holdfast history` (`compare` has its own file) and `holdfast asset`, by their whole output."""

from __future__ import annotations

import json
import shutil

import pytest

from holdfast.cli import history as history_commands
from holdfast.cli.main import main
from holdfast.cli.tables import fitting
from holdfast.history.database import Database
from holdfast.history.index import Index
from holdfast.history.records import read_run
from holdfast.model import Ending, Reason
from holdfast.presenting.run_words import table
from unit.history.conftest import Outcome

A, B = "iris_1521077190506", "iris_1521077190507"
FAILED = Ending(Reason.EXIT_CODE, 3)


def test_the_table_shows_the_newest_first_with_the_most_frequent_metrics(archive, history):
    archive.add(archive.completed, {"loss": 0.25, "acc": 0.912345678, "rare": 1})
    archive.add(archive.failed, {"loss": 0.5, "acc": float("inf"), "curve": [1, 2]}, run_number=2)
    archive.add((), run_number=3, script_name="new.py")
    assert history("list", "-o", "table") == Outcome(
        0,
        "Run                 No  Script    Target  Status     Ended by     Started           Duration"
        "  loss      acc       curve\n"
        "------------------  --  --------  ------  ---------  -----------  ----------------  --------"
        "  ----  -------  ----------\n"
        "iris_1521077190508   3  new.py    local   Submitted\n"
        "iris_1521077190507   2  train.py  local   Failed     exit code 3  2018-03-15 01:26      2.0s"
        "   0.5      inf  [2 values]\n"
        "iris_1521077190506   1  train.py  local   Completed               2018-03-15 01:26      4.9s"
        "  0.25  0.91235\n",
        "",
    )


def titles(runs, width):
    found = table(runs, {}, 0.0)
    return [each.title for each in fitting(found.columns, found.by_worth(), found.rows, width)]


def test_a_narrow_terminal_gets_fewer_columns_and_whole_run_ids(archive):
    runs = [read_run(archive.folders, archive.add(archive.failed, {"loss": 0.5, "acc": 1})) for _ in range(2)]
    shown = {width: titles(runs, width) for width in (10, 80, 120)}
    assert shown == {
        10: ["Run"],
        80: ["Run", "Script", "Target", "Status", "Ended by", "Duration", "loss"],
        120: ["Run", "No", "Script", "Target", "Status", "Ended by", "Started", "Duration", "loss", "acc"],
    }


def test_how_a_run_ended_gives_way_before_how_long_it_took(archive):
    runs = [read_run(archive.folders, archive.add(archive.failed))]
    shown = [titles(runs, width) for width in range(20, 120)]
    assert ["Run", "Script", "Status", "Duration"] in shown
    assert all("Duration" in titles for titles in shown if "Ended by" in titles)


def test_a_table_says_how_many_runs_it_leaves_out(archive, history, monkeypatch):
    for _ in range(4):
        archive.add()
    shown = history("list", "-o", "table", "--limit", "1")
    assert len(shown.out.splitlines()) == 3
    assert shown.err == "", "who asks for one run knows that there are more"
    monkeypatch.setattr(history_commands, "TABLE_ROWS", 1)
    assert history("list", "-o", "table").err == "3 older runs are not shown: --limit 4\n"
    assert len(json.loads(history("list").out)) == 4
    assert [each["run_id"] for each in json.loads(history("list", "--limit", "1").out)] == ["iris_1521077190509"]


def test_a_query_for_the_best_of_a_metric_is_answered(archive, history):
    for metrics in ({"Accuracy": 0.5}, {"Accuracy": 0.75}, {}):
        archive.add(metrics=metrics)
    query = "@[?Accuracy != null] | max_by(@, &Accuracy).Accuracy"
    assert history("list", "--query", query) == Outcome(0, "0.75\n", "")


def test_an_empty_history_says_what_to_do(history, tmp_path):
    shutil.rmtree(tmp_path / ".holdfast")
    said = "Nothing has been run here yet.\n  holdfast experiment submit SCRIPT\n"
    assert history("list", "-o", "table") == Outcome(0, "", said)
    assert history("list").out == "[]\n"
    assert history("rebuild").out == "0 runs in the index.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_run_is_warned_of_and_the_others_are_shown(archive, history):
    archive.add()
    archive.add()
    (archive.folders.path(A) / "submission.json").write_text("{")
    shown = history("list", "--query", "[].run_id", "-o", "tsv")
    assert shown.out == f"{B}\n"
    assert shown.err == (f"warning: the folder of run `{A}` cannot be read.\n  Why: holdfast history info -r {A}\n")
    assert history("info", "-r", A).code == 244


def test_the_page_of_a_run_has_everything(archive, history):
    archive.add(
        archive.failed[:-1]
        + archive.completed[5:7]
        + ({"t": 1521077196.506, "e": "note", "text": "a note\x1b[31m"},)
        + archive.failed[-1:],
        {"loss": 0.5},
        {"run": {"Framework": "Python", "Target": None}, "target": {"type": "local"}},
        arguments=("--name", "two words"),
        properties={"git": "abc"},
    )
    archive.add(parent_run_id=A)
    outputs = archive.folders.path(A) / "outputs"
    outputs.mkdir()
    (outputs / "model.pkl").write_text("model")
    assert history("info", "-r", A, "-o", "table") == Outcome(
        0,
        f"""\
Run            {A}
Status         Failed
How it ended   {FAILED.sentence()}
What to do     {FAILED.remedy(A, "local")}
Duration       2.0s
Metrics        loss: 0.5
Outputs        outputs/model.pkl (5 B)
Other files    scratch.bin (12 B)
               To fetch one: holdfast history download -r {A} -d DIR --artifact scratch.bin
Notes          a note\\x1b[31m
Processes      loader (9) ended by SIGTERM
Children       {B}
Submitted      2018-03-15 01:26
Started        2018-03-15 01:26
Ended          2018-03-15 01:26
Script         train.py
Arguments      --name 'two words'
Number         1
Target         local (local)
Snapshot       {"a" * 64}
Properties     git: abc
Environment    env-1, 2 packages, was there already
Packages       numpy==1.26.4, torch==2.1.0
Configuration  local
Settings       run.Framework: Python
               target.type: local
""",
        "",
    )


def test_the_json_of_a_run_has_everything(archive, history):
    archive.add(metrics={"loss": 0.5, "children": 3}, configuration={"run": {"Framework": "Python"}})
    record = json.loads(history("info", "-r", "last").out)
    assert record["configuration"] == {"run": {"Framework": "Python"}}
    assert record["children"] == []
    assert record["metrics"] == {"loss": 0.5, "children": 3}
    assert record["packages"] == ["numpy==1.26.4", "torch==2.1.0"]
    assert json.loads(history("last").out) == record


def test_an_artifact_is_printed_byte_for_byte(own, archive, tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    archive.add()
    (archive.folders.path(A) / "driver_log").write_bytes(b"a\r\n\xff\0")
    assert main(["history", "info", "-r", A, "-a", "driver_log"]) == 0
    assert capfdbinary.readouterr().out == b"a\r\n\xff\0"


def test_an_unknown_run_is_a_usage_error_with_the_nearest(archive, history):
    archive.add()
    failed = history("info", "-r", "iris_1521077190999")
    assert (failed.code, failed.out) == (240, "")
    assert f"`{A}`" in failed.err


def test_outputs_are_downloaded_promoted_and_fetched(archive, history, tmp_path):
    archive.add()
    outputs = archive.folders.path(A) / "outputs"
    outputs.mkdir()
    (outputs / "model.pkl").write_text("model")
    fetched = history("download", "-r", A, "-d", "got")
    assert fetched == Outcome(0, "got/outputs/model.pkl\n", fetched.err)
    assert fetched.err.startswith("1 file, 5 B.\n") and "`/got/` in .amlignore" in fetched.err
    assert history("download", "-r", A, "-d", "got").code == 240
    assert history("promote", "-r", A, "-ap", "outputs/model.pkl", "-n", "model.pkl") == Outcome(
        0, "assets/model.pkl.link\n", "  Fetch it: holdfast asset download -l assets/model.pkl.link -d DIR\n"
    )
    assert history("asset", "download", "-l", "assets/model.pkl.link", "-d", "there") == Outcome(
        0, "there/model.pkl\n", ""
    )
    assert (tmp_path / "there" / "model.pkl").read_text() == "model"


def test_rebuilding_counts_the_runs(archive, history):
    archive.add()
    archive.add(tracked=False)
    Database(archive.state).path.write_bytes(b"damaged" * 500)
    assert history("rebuild") == Outcome(0, "2 runs in the index.\n", "")


def test_unfinished_runs_are_asked_about_and_shown_if_that_fails(archive, history, monkeypatch):
    archive.add(archive.running)
    asked = []

    def refresh(project, context, looking):
        asked.append(project.root)
        raise OSError("no answer")
        yield

    monkeypatch.setattr("holdfast.workbench.records.refresh.refresh", refresh)
    shown = history("list", "--query", "[].status", "-o", "tsv")
    assert shown == Outcome(0, "Running\n", "warning: unfinished runs are shown as they were last known: no answer\n")
    assert len(asked) == 1


def test_where_every_run_is_at_home_the_folders_are_looked_at_once_and_no_host_is_asked(archive, history, monkeypatch):
    archive.add()
    archive.add(archive.failed)
    looked = []
    synchronize = Index._synchronize

    def counted(*words, **more):
        looked.append(1)
        return synchronize(*words, **more)

    monkeypatch.setattr(Index, "_synchronize", counted)
    monkeypatch.setattr("holdfast.workbench.records.refresh.refresh", lambda *_: pytest.fail("a host was asked"))
    assert len(json.loads(history("list").out)) == 2
    assert len(looked) == 1
    assert history("info", "-r", "last").code == 0
    assert len(looked) == 2


def test_a_run_that_is_at_home_is_shown_without_asking_about_the_others(archive, history, monkeypatch):
    archive.add()
    archive.add(archive.running)
    asked = []

    def refresh(*_):
        asked.append(1)
        return iter(())

    monkeypatch.setattr("holdfast.workbench.records.refresh.refresh", refresh)
    assert history("info", "-r", A).code == 0
    assert asked == []
    assert history("info", "-r", B).code == history("compare", A, B).code == 0
    assert asked == [1, 1]


def test_runs_are_listed_by_status_script_and_target(archive, history):
    archive.add()
    archive.add(archive.failed)
    archive.add(script_name="deep/other.py", target="gpu")
    third = "iris_1521077190508"

    def listed(*words):
        return [each["run_id"] for each in json.loads(history("list", *words).out)]

    assert listed("--status", "failed") == [B]
    assert listed("--status", "Completed", "--target", "local") == [A]
    assert listed("--script", "./deep/other.py") == listed("--target", "gpu") == [third]
    said = "No run is like that.\n  All runs: holdfast history list\n"
    assert history("list", "--status", "Canceled", "-o", "table") == Outcome(0, "", said)
    assert history("list", "--status", "done").code == 240
