"""What differs between two records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.history.run_differences import Difference, MetricPair, RunView, compare_runs
from holdfast.model import Ending, Reason, Status
from kit.journals import folded


@pytest.fixture
def run(submission):
    return folded(submission)


def arguments_of(run, *first_and_second):
    views = [
        RunView(replace(run, submission=replace(run.submission, arguments=tuple(line.split()))), {})
        for line in first_and_second
    ]
    return [(each.name, each.first, each.second) for each in compare_runs(*views).arguments]


def test_equal_runs_have_no_differences(run):
    view = RunView(replace(run, packages=("a==1",)), {"x": {"y": [1]}})
    found = compare_runs(view, view)
    assert (found.facts, found.arguments, found.configuration, found.packages, found.metrics) == ((),) * 5


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("--rate 0.1 data", "--rate 0.2 data", [("--rate", "0.1", "0.2")]),
        ("--rate=0.1", "--rate 0.2", [("--rate", "0.1", "0.2")]),
        ("--fast", "", [("--fast", "given", None)]),
        ("a b", "a c", [("argument 2", "b", "c")]),
        ("--shift -1", "--shift -2", [("--shift", "-1", "-2")]),
        ("--x 1 --x 2", "--x 1", [("arguments", "--x 1 --x 2", "--x 1")]),
        ("--a 1 --b 2", "--b 2 --a 1", [("arguments", "--a 1 --b 2", "--b 2 --a 1")]),
        ("--a=1", "--a 1", [("arguments", "--a=1", "--a 1")]),
    ],
)
def test_arguments_are_compared_by_option_where_that_tells_more(run, first, second, expected):
    assert arguments_of(run, first, second) == expected


def test_configuration_is_compared_key_by_key(run):
    first = RunView(run, {"run": {"Framework": "Python", "EnvironmentVariables": {"A": "1"}}, "list": [1]})
    second = RunView(run, {"run": {"Framework": "PySpark", "EnvironmentVariables": {}}, "list": [1, 2]})
    assert compare_runs(first, second).configuration == (
        Difference("list", "[1]", "[1, 2]"),
        Difference("run.EnvironmentVariables.A", "1", None),
        Difference("run.Framework", "Python", "PySpark"),
        Difference("run.EnvironmentVariables", None, "{}"),
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_packages_without_a_record_are_not_said_to_be_gone(run, is_first):
    known, unknown = RunView(replace(run, packages=("numpy==1.0",)), {}), RunView(run, {})
    found = compare_runs(unknown, known) if is_first else compare_runs(known, unknown)
    assert found.packages == ()
    assert found.packages_not_recorded == (run.run_id,)


def test_packages_are_added_removed_and_changed(run):
    first = RunView(replace(run, packages=("numpy==1.0", "torch==2.1", "same==1")), {})
    second = RunView(replace(run, packages=("same==1", "pandas==2", "numpy==1.1")), {})
    assert compare_runs(first, second).packages == (
        Difference("numpy", "1.0", "1.1"),
        Difference("torch", "2.1", None),
        Difference("pandas", None, "2"),
    )


def test_metrics_stand_side_by_side_with_their_change(run):
    first = RunView(replace(run, metrics={"loss": 2, "name": "a", "nan": float("nan"), "big": 10**400}), {})
    second = RunView(replace(run, metrics={"loss": 1.5, "name": "b", "nan": 1.0, "big": 1, "new": True}), {})
    found = {each.name: each for each in compare_runs(first, second).metrics}
    assert list(found) == ["big", "loss", "name", "nan", "new"]
    assert found["loss"] == MetricPair("loss", 2, 1.5, -0.5)
    assert [found[name].change for name in ("big", "name", "nan", "new")] == [None] * 4


def test_how_the_runs_ended_is_compared(run):
    failed = replace(run, status=Status.FAILED, ending=Ending(Reason.EXIT_CODE, code=3), started=1.0, ended=3.5)
    assert compare_runs(RunView(run, {}), RunView(failed, {})).facts == (
        Difference("status", "Submitted", "Failed"),
        Difference("ended", None, failed.ending.sentence()),
        Difference("duration", None, "0:00:02.500000"),
    )


def test_another_image_under_the_same_name_is_a_difference(run):
    first = RunView(replace(run, image="pytorch:latest", image_id="sha256:aa"), {})
    second = RunView(replace(run, image="pytorch:latest", image_id="sha256:bb"), {})
    assert compare_runs(first, second).facts == (Difference("image id", "sha256:aa", "sha256:bb"),)


def test_a_setting_that_is_not_set_is_as_one_that_is_not_there(run):
    first, second = RunView(run, {"a": None, "b": 1}), RunView(run, {"b": 1, "volumes": [], "memory": None})
    assert compare_runs(first, second).configuration == ()
