"""What a JMESPath query says about metrics, as conditions that the index can look up.

`[?accuracy > `0.9`] | max_by(@, &accuracy)` looks at every run, and at 10,000 of them making each into a dict costs
most of the time. The query itself is always run on what is left: a condition found here may only leave out what it
would."""

from __future__ import annotations

from typing import Any, NamedTuple

_OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "="}
_EXACT = 2**53
"""The index holds floats; beyond this they are not every integer."""
_SAME_LIST = ("pipe", "subexpression", "index_expression")
_OF_A_LIST = ("max_by", "min_by", "sort_by", "length")


class MetricCondition(NamedTuple):
    """`operator` is SQL's; empty: the run has a value of that name, whatever it is."""

    name: str
    operator: str = ""
    number: float = 0.0


def metric_conditions(query: str, reserved: frozenset[str]) -> tuple[MetricCondition, ...]:
    """All must hold for a run that the query's first filter lets through. Empty: the query says nothing that helps.

    `reserved` are keys of a run that are no metrics. The query must be a valid one."""
    import jmespath

    node: Any = jmespath.compile(query).parsed
    while node["type"] in _SAME_LIST or (node["type"] == "function_expression" and _takes_one_list(node)):
        node = node["children"][0]
    if node["type"] != "filter_projection" or node["children"][0]["type"] not in ("identity", "current"):
        return ()
    found = _conditions(node["children"][2])
    return tuple(each for each in found if each.name not in reserved)


def _takes_one_list(node: dict[str, Any]) -> bool:
    others = node["children"][1:]
    return node["value"] in _OF_A_LIST and all(each["type"] == "expref" for each in others)


def _conditions(node: dict[str, Any]) -> list[MetricCondition]:
    if node["type"] == "and_expression":
        return [each for child in node["children"] for each in _conditions(child)]
    if node["type"] != "comparator":
        return []
    left, right = node["children"]
    if left["type"] != "field" or left["value"] == "null":
        return []
    if node["value"] == "ne" and _is_null(right):
        return [MetricCondition(left["value"])]
    number = right.get("value")
    is_number = right["type"] == "literal" and isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or abs(number) > _EXACT or node["value"] not in _OPERATORS:
        return []
    return [MetricCondition(left["value"], _OPERATORS[node["value"]], float(number))]


def _is_null(node: dict[str, Any]) -> bool:
    """`null` without quotes is a field of that name to JMESPath, which no run has."""
    return (node["type"] == "literal" and node["value"] is None) or (
        node["type"] == "field" and node["value"] == "null"
    )
