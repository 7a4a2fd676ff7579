"""Conditions on metrics that narrow a query: they never leave out more than the query itself."""

from __future__ import annotations

import operator

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from holdfast.history.queries import MetricCondition, metric_conditions

NAMES = ["accuracy", "loss"]


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        ("[?accuracy > `0.9`]", [("accuracy", ">", 0.9)]),
        ("[?accuracy >= `1` && loss < `0.1`].run_id", [("accuracy", ">=", 1.0), ("loss", "<", 0.1)]),
        ("@[?Accuracy != null] | max_by(@, &Accuracy).Accuracy", [("Accuracy", "", 0.0)]),
        ("max_by([?accuracy != `null`], &accuracy).run_id", [("accuracy", "", 0.0)]),
        ("[?status=='Completed' && accuracy == `1`]", [("accuracy", "=", 1.0)]),
        ("[?accuracy > `0.9` || loss < `1`]", []),
        ("[?status=='Completed']", []),
        ("[?run_number > `3`]", []),
        ("[].accuracy", []),
        ("{all: length(@), good: [?accuracy > `0.9`]}", []),
        ("[?!(accuracy > `0.9`)]", []),
        ("[?`0.9` < accuracy]", []),
    ],
)
def test_what_a_query_says_about_metrics(query, conditions):
    assert metric_conditions(query) == tuple(MetricCondition(*each) for each in conditions)


COMPARISONS = some.builds(
    "{} {} {}".format,
    some.sampled_from(NAMES),
    some.sampled_from([">", ">=", "<", "<=", "==", "!="]),
    some.sampled_from(["`0.5`", "`1`", "null", "`null`", "'text'", "loss"]),
)
FILTERS = some.lists(COMPARISONS, min_size=1, max_size=3).flatmap(
    lambda parts: some.lists(some.sampled_from([" && ", " || "]), min_size=len(parts), max_size=len(parts)).map(
        lambda joins: "".join(part + join for part, join in zip(parts, joins, strict=True)).rstrip(" &|")
    )
)
QUERIES = some.builds(
    str.format,
    some.sampled_from(["[?{}]", "[?{}].accuracy", "@[?{}] | [0]", "[?{}] | length(@)", "sort_by([?{}], &run_id)"]),
    FILTERS,
)
VALUES = some.one_of(some.sampled_from([0.0, 0.5, 1, 2]), some.just("text"), some.just([1, 2]))


@settings(max_examples=80)
@given(QUERIES, some.lists(some.dictionaries(some.sampled_from(NAMES), VALUES), max_size=6))
def test_a_narrowed_query_gives_what_the_query_gives(query, metrics):
    runs = [{"run_id": str(number), **each} for number, each in enumerate(metrics)]
    conditions = metric_conditions(query)
    left = [run for run in runs if all(_holds(condition, run) for condition in conditions)]
    try:
        expected = jmespath.search(query, runs)
    except TypeError:  # the library compares a number with a text; the command says so
        return
    assert jmespath.search(query, left) == expected


def _holds(condition: MetricCondition, run: dict) -> bool:
    """As the index decides: it compares numbers; anything else only exists or not."""
    value = run.get(condition.name)
    if not condition.operator:
        return value is not None
    if not isinstance(value, int | float):
        return False
    compare = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}
    return bool(compare[condition.operator](value, condition.number))
