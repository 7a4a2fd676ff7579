"""Submissions and runs as JSON and back: what `submission.json` and the index's rows hold.

Reading is lenient in one direction: keys that this version does not know are ignored, so that a record of a
later version stays readable for as long as it holds what this one needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.frozen import field_names
from holdfast.history.verdicts import verdict_json, verdict_of
from holdfast.model import EndedProcess, Ending, FileSize, Reason, Run, Status, Submission

YEAR_10000 = 253402300800.0
"""Seconds since 1970 from which on no calendar can show a time: nothing that a clock wrote."""


class UnreadableError(ValueError):
    """The data is not what it should be; the text says what is missing. Callers add the file's name."""


def submission_json(submission: Submission) -> dict[str, Any]:
    data = {name: getattr(submission, name) for name in field_names(submission)}
    return data | {"arguments": list(submission.arguments), "properties": dict(submission.properties)}


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


def run_json(run: Run) -> dict[str, Any]:
    """The whole record; `run_from_json` gives back an equal one."""
    return {
        "submission": submission_json(run.submission),
        "status": run.status.value,
        "ending": None if run.ending is None else _ending_json(run.ending),
        "started": run.started,
        "ended": run.ended,
        "exited": run.exited,
        "phase": run.phase,
        "environment": run.environment,
        "python": run.python,
        "packages": list(run.packages),
        "image": run.image,
        "image_id": run.image_id,
        "container": run.container,
        "has_gpus": run.has_gpus,
        "built_in": run.built_in,
        "ended_processes": [[each.pid, each.name, each.signal] for each in run.ended_processes],
        "other_files": [[each.path, each.size] for each in run.other_files],
        "other_files_count": run.other_files_count,
        "outputs": [[each.path, each.size] for each in run.outputs],
        "notes": list(run.notes),
        "metrics": dict(run.metrics),
        "clock_offset": run.clock_offset,
        "outputs_left": run.outputs_left,
        "gpu": None if run.gpu is None else verdict_json(run.gpu),
    }


def run_from_json(data: Mapping[str, Any]) -> Run:
    """The inverse of `run_json`. Raises `UnreadableError` for what this version did not write."""
    try:
        ending = data["ending"]
        return Run(
            submission=submission_from_json(data["submission"]),
            status=Status(data["status"]),
            ending=None if ending is None else Ending(**(ending | {"reason": Reason(ending["reason"])})),
            started=data["started"],
            ended=data["ended"],
            exited=_number_or_none(data.get("exited")),  # not in records that an earlier version indexed
            phase=data["phase"],
            environment=data["environment"],
            python=data.get("python", ""),  # not in records that an earlier version indexed
            packages=tuple(data["packages"]),
            image=_text_or_none(data.get("image")),
            image_id=_text_or_none(data.get("image_id")),
            container=_text_or_none(data.get("container")),
            has_gpus=data["has_gpus"] if isinstance(data.get("has_gpus"), bool) else None,
            built_in=_number_or_none(data.get("built_in")),
            ended_processes=tuple(EndedProcess(*each) for each in data["ended_processes"]),
            other_files=tuple(FileSize(*each) for each in data["other_files"]),
            other_files_count=data["other_files_count"],
            outputs=tuple(FileSize(*each) for each in data["outputs"]),
            notes=tuple(data["notes"]),
            metrics=data["metrics"],
            clock_offset=_number_or_none(data.get("clock_offset")),
            outputs_left=data.get("outputs_left") is True,
            gpu=verdict_of(data.get("gpu")),
        )
    except UnreadableError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableError(f"not a record of this version: {error}") from error


def _ending_json(ending: Ending) -> dict[str, Any]:
    return {name: getattr(ending, name) for name in field_names(ending)} | {"reason": ending.reason.value}


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number_or_none(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


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
