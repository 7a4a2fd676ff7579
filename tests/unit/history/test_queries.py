"""Runs as dicts: the keys and the queries that people know from `az ml history`."""

from __future__ import annotations

import io
import json

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cli.output_format import Output
from holdfast.errors import UsageError
from holdfast.history.index import Index
from holdfast.history.queries import duration_text, iso_utc, metric_conditions, run_as_dict, run_in_detail
from holdfast.history.records import read_run


@pytest.fixture
def records(archive):
    archive.add(archive.completed, {"Accuracy": 0.7})
    archive.add(archive.completed, {"Accuracy": 0.9})
    archive.add(archive.failed)
    archive.add(archive.running, {"Accuracy": 0.1})
    return [run_as_dict(run) for run in Index(archive.state).list()]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("[?status=='Completed'].Accuracy", [0.9, 0.7]),
        ("@[?Accuracy != null] | max_by(@, &Accuracy).Accuracy", 0.9),
    ],
)
def test_queries_work_as_in_the_original(records, query, found):
    assert jmespath.search(query, records) == found


QUERIES = (
    "[]",
    "[?status=='Completed']",
    "[?loss != null] | max_by(@, &loss).run_id",
    "sort_by([?type(loss) == 'number'], &loss)[].[run_id, loss]",
    "[?loss > `0`].metrics",
    "[?loss <= `0.5` && name != null].run_id",
    "[?curve == `1`].run_id",
    "[?name == 'x'].{id: run_id, when: created_utc, took: duration}",
    "[?contains(keys(metrics), 'curve')].curve[0]",
    "[].metrics.loss | [?@ != null] | length(@)",
    "[-1].[reason, exit_code, notes, attachments]",
    "[].metrics.*",
)
_NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.booleans())
_METRICS = st.dictionaries(
    st.sampled_from(["loss", "name", "curve", "status", "a\u00e9\ud800", ""]),
    st.one_of(_NUMBERS, st.sampled_from(["x", "NaN", "\udcff", ""]), st.lists(_NUMBERS, max_size=3)),
    max_size=4,
)
_RUNS = st.lists(st.tuples(st.sampled_from(["completed", "failed", "running"]), _METRICS), max_size=6)


@settings(max_examples=8, deadline=None)
@given(_RUNS, st.booleans())
def test_a_query_over_the_index_is_one_over_the_folders(tmp_path_factory, made_archive, runs, looked_before):
    archive = made_archive(tmp_path_factory.mktemp("project") / ".holdfast")
    index = Index(archive.state)
    for number, (journal, metrics) in enumerate(runs):
        archive.add(getattr(archive, journal), metrics, run_number=number + 1, created=1.5e9 + number // 2)
        if looked_before:
            index.list()
    by_folder = [run_as_dict(read_run(archive.folders, run_id)) for run_id in reversed(archive.folders.all_ids())]
    by_index = [run_as_dict(run) for run in index.list()]
    for query in QUERIES:
        expected = answer(query, by_folder)
        assert answer(query, by_index) == expected, query
        narrowed = list(index.documents(metrics=metric_conditions(query)).documents)
        # A run whose text cannot be compared with a number may be left out before that is tried.
        assert answer(query, narrowed) == expected or expected is None, query


def answer(query, records):
    """What the command line prints for `--query`; None where it refuses."""
    stream = io.StringIO()
    try:
        Output("json", query).show(records, stream=stream)
    except UsageError:
        return None
    return stream.getvalue()


def test_a_run_has_the_keys_of_the_original_and_our_own(archive):
    run_id = archive.add(archive.completed, {"Accuracy": 0.9}, run_number=4, properties={"a": "b"})
    assert run_as_dict(read_run(archive.folders, run_id)) == {
        "run_id": "iris_1521077190506",
        "run_number": 4,
        "script_name": "train.py",
        "arguments": ["--rate", "0.1"],
        "command": [],
        "from": None,
        "data": [],
        "terminal": False,
        "folder": "",
        "run_configuration": "local",
        "target": "local",
        "target_type": "local",
        "status": "Completed",
        "reason": "completed",
        "exit_code": 0,
        "reason_text": "The script ended by itself with exit code 0.",
        "remedy": None,
        "phase": None,
        "created_utc": "2018-03-15T01:26:30.506000+00:00",
        "start_time_utc": "2018-03-15T01:26:34.506000+00:00",
        "end_time_utc": "2018-03-15T01:26:39.398389+00:00",
        "duration": "0:00:04.892389",
        "parent_run_id": None,
        "snapshot": "a" * 64,
        "environment": "env-1",
        "image": None,
        "image_id": None,
        "properties": {"a": "b"},
        "attachments": ["outputs/model.pkl"],
        "notes": [],
        "metrics": {"Accuracy": 0.9},
        "gpu": None,
        "Accuracy": 0.9,
    }


def test_a_failed_run_says_why_and_what_to_do(archive):
    run_id = archive.add(archive.failed)
    record = run_as_dict(read_run(archive.folders, run_id))
    assert (record["status"], record["reason"], record["exit_code"]) == ("Failed", "exit-code", 3)
    assert record["reason_text"] == "The script ended with exit code 3."
    assert record["remedy"] == f"Its output has the cause: holdfast logs -r {run_id}"


def test_a_metric_with_a_taken_name_is_under_metrics_only(archive):
    run_id = archive.add(metrics={"status": "fine", "metrics": 1, "packages": 2, "loss": 3})
    run = read_run(archive.folders, run_id)
    record, details = run_as_dict(run), run_in_detail(run)
    assert record["status"] == "Completed"
    assert record["metrics"] == {"status": "fine", "metrics": 1, "packages": 2, "loss": 3}
    assert (record["loss"], record["packages"]) == (3, 2)
    assert details["packages"] == ["numpy==1.26.4", "torch==2.1.0"]


def test_the_details_have_files_processes_and_packages_as_json(archive):
    details = run_in_detail(read_run(archive.folders, archive.add()))
    assert details["outputs"] == [{"path": "outputs/model.pkl", "size": 5}]
    assert details["other_files"] == [{"path": "scratch.bin", "size": 12}]
    assert details["other_files_count"] == 1
    assert details["ended_processes"] == [{"pid": 9, "name": "loader", "signal": "SIGTERM"}]
    assert json.loads(json.dumps(details)) == details


def test_a_run_that_goes_on_has_no_end(archive):
    record = run_as_dict(read_run(archive.folders, archive.add(archive.running)))
    assert [record[key] for key in ("end_time_utc", "duration", "reason", "exit_code")] == [None] * 4
    assert record["phase"] is None  # its script runs: what came before is over


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.892389, "0:00:04.892389"), (0, "0:00:00"), (90061, "1 day, 1:01:01"), (None, None)]
)
def test_durations_are_written_as_in_the_original(seconds, text):
    assert duration_text(seconds) == text


def test_times_are_iso_in_utc():
    assert iso_utc(0) == "1970-01-01T00:00:00+00:00"
    assert iso_utc(253402300799.5) == "9999-12-31T23:59:59.500000+00:00"
