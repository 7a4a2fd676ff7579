"""Submissions, runs and verdicts about GPUs from JSON: what `submission.json`, the journal and the index's rows
hold.

Reading is lenient in one direction: keys that this version does not know are ignored, so that a record of a
later version stays readable for as long as it holds what this one needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.codec import Malformed, decode, recover
from holdfast.frozen import field_names, replace
from holdfast.model import Run, Submission, UseState, Verdict

YEAR_10000 = 253402300800.0
"""Seconds since 1970 from which on no calendar can show a time: nothing that a clock wrote."""


class UnreadableError(ValueError):
    """The data is not what it should be; the text says what is missing. Callers add the file's name."""


def submission_from_json(data: object) -> Submission:
    if not isinstance(data, dict):
        raise UnreadableError("it is not a JSON object")
    known = {name: data[name] for name in field_names(Submission) if name in data}
    for name, kinds in _REQUIRED.items():
        value = known.get(name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise UnreadableError(f"`{name}` is missing or not what it should be")
    if not (0 <= known["created"] < YEAR_10000 and 0 <= known["run_number"] < 2**53):
        raise UnreadableError("`created` or `run_number` is out of range")
    known["created"] = float(known["created"])
    known["arguments"] = tuple(str(each) for each in known["arguments"])
    known["parent_run_id"] = _text_or_none(known.get("parent_run_id"))
    known["tracked"] = known.get("tracked") is not False
    known["fetch_outputs"] = known.get("fetch_outputs") is not False
    known["sync_outputs"] = _number_or_none(known.get("sync_outputs"))
    properties = known.get("properties")
    pairs = properties.items() if isinstance(properties, dict) else ()
    known["properties"] = {str(name): str(value) for name, value in pairs}
    return Submission(**known)


def run_from_json(data: Any) -> Run:
    """A record as `encode` wrote it. Raises `UnreadableError` for what this version did not write."""
    try:
        return decode(Run, data)
    except Malformed as error:
        raise UnreadableError(f"not a record of this version: {error}") from error


def verdict_of(data: object) -> Verdict | None:
    """None for what is no verdict at all. A state that this version does not know is one that it cannot judge by."""
    if not isinstance(data, Mapping) or not isinstance(data.get("state"), str):
        return None
    state = data["state"] if data["state"] in _STATES else UseState.UNKNOWN.value
    verdict = recover(Verdict, {**data, "state": state})
    return replace(verdict, spells=tuple(each for each in verdict.spells if each[0] <= each[1]))


def in_words(state: UseState) -> str:
    match state:
        case UseState.NOT_ASKED:
            return "not asked for"
        case UseState.USED:
            return "used"
        case UseState.PARTLY_USED:
            return "partly"
        case UseState.NOT_USED:
            return "NOT used"
        case UseState.NOT_AVAILABLE:
            return "not available"
        case UseState.UNKNOWN:
            return "unknown"


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number_or_none(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_STATES = {each.value for each in UseState}
_REQUIRED: Mapping[str, tuple[type, ...]] = {
    "run_id": (str,),
    "run_number": (int,),
    "project_id": (str,),
    "project_name": (str,),
    "script_name": (str,),
    "arguments": (list,),
    "run_configuration": (str,),
    "target": (str,),
    "target_type": (str,),
    "snapshot": (str,),
    "created": (int, float),
    "generation": (str,),
}
