"""A run as the dict that `--query` and `-o json` work on: the keys of `az ml history`, and a few of our own.

The last value of each metric is a key at the top (`[?Accuracy != null]`). A metric whose name is a key of the run is
only found under `metrics`, which has them all.

Conditions on metrics in a query are looked up in the index, because making 10,000 runs into dicts takes most of the
time. The query is always run on what is left, so conditions only leave out what it would not select.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from holdfast.codec import encode
from holdfast.model import Ending, Run


def run_as_dict(run: Run) -> dict[str, Any]:
    """What `history list` shows of a run."""
    record = _record(run)
    return record | {name: value for name, value in run.metrics.items() if name not in record}


def run_in_detail(run: Run) -> dict[str, Any]:
    """What `history info` shows of a run: `run_as_dict` and everything else that its folder says."""
    details = _record(run) | {
        "outputs": [each._asdict() for each in run.outputs],
        "other_files": [each._asdict() for each in run.other_files],
        "other_files_count": run.other_files_count,
        "left_on_machine": [each._asdict() for each in run.left.files],
        "left_on_machine_count": run.left.count,
        "left_on_machine_bytes": run.left.size,
        "ended_processes": [each._asdict() for each in run.ended_processes],
        "container": run.container,
        "container_has_gpus": run.has_gpus,
        "clock_offset": run.clock_offset,
        "python": run.python or None,
        "packages": list(run.packages),
        "environment_built_in": run.built_in,
    }
    return details | {name: value for name, value in run.metrics.items() if name not in details}


def iso_utc(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    # Whole microseconds, counted from the epoch: `fromtimestamp` refuses some times on some systems.
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=round(seconds * 1_000_000))
    return moment.isoformat()


def duration_text(seconds: float | None) -> str | None:
    """`0:00:04.892389`, as `az` wrote it."""
    return None if seconds is None else str(timedelta(microseconds=round(seconds * 1_000_000)))


def _of_ending(read: Callable[[Ending], Any]) -> Callable[[Run], Any]:
    return lambda run: None if run.ending is None else read(run.ending)


_KEYS: Mapping[str, Callable[[Run], Any]] = {
    "run_id": lambda run: run.run_id,
    "run_number": lambda run: run.submission.run_number,
    "script_name": lambda run: run.submission.script_name,
    "arguments": lambda run: list(run.submission.arguments),
    "command": lambda run: list(run.submission.command),
    "folder": lambda run: run.submission.folder,
    "data": lambda run: encode(run.submission.data),
    "from": lambda run: None if run.submission.earlier is None else str(run.submission.earlier),
    "terminal": lambda run: run.submission.terminal,
    "run_configuration": lambda run: run.submission.run_configuration,
    "target": lambda run: run.submission.target,
    "target_type": lambda run: run.submission.target_type,
    "status": lambda run: run.status.value,
    "reason": _of_ending(lambda ending: ending.reason.value),
    "exit_code": _of_ending(lambda ending: ending.code),
    "reason_text": lambda run: run.how_it_ended() or None,
    "remedy": lambda run: run.remedy() or None,
    "phase": lambda run: run.phase or None,
    "created_utc": lambda run: iso_utc(run.submission.created),
    "start_time_utc": lambda run: iso_utc(run.started),
    "end_time_utc": lambda run: iso_utc(run.ended),
    "duration": lambda run: duration_text(run.duration),
    "parent_run_id": lambda run: run.submission.parent_run_id,
    "snapshot": lambda run: run.submission.snapshot,
    "environment": lambda run: run.environment,
    "image": lambda run: run.image,
    "image_id": lambda run: run.image_id,
    "properties": lambda run: dict(run.submission.properties),
    "attachments": lambda run: [each.path for each in run.outputs],
    "notes": lambda run: list(run.notes),
    "metrics": lambda run: dict(run.metrics),
    "gpu": lambda run: encode(run.gpu),
}
"""No metric can take one of these."""


def _record(run: Run) -> dict[str, Any]:
    return {key: read(run) for key, read in _KEYS.items()}


_OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "="}
_EXACT = 2**53
"""The index holds floats, which beyond this do not represent every integer."""
_SAME_LIST = ("pipe", "subexpression", "index_expression")
_OF_A_LIST = ("max_by", "min_by", "sort_by", "length")


class MetricCondition(NamedTuple):
    """`operator` is SQL's; empty: the run has a value of that name."""

    name: str
    operator: str = ""
    number: float = 0.0


def metric_conditions(query: str) -> tuple[MetricCondition, ...]:
    """Conditions that hold for every run that the query selects. Empty: the query has none that helps. The query must
    be valid."""
    import jmespath

    node: Any = jmespath.compile(query).parsed
    while node["type"] in _SAME_LIST or (node["type"] == "function_expression" and _takes_one_list(node)):
        node = node["children"][0]
    if node["type"] != "filter_projection" or node["children"][0]["type"] not in ("identity", "current"):
        return ()
    found = _conditions(node["children"][2])
    return tuple(each for each in found if each.name not in _KEYS)


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
