"""The journal as values: whole lines of bytes in, frozen events out. Any bytes are accepted, nothing raises.

A line that cannot be read is counted and passed over. A last line without its newline is still being written
and is left for later. Bytes of value 0 are what some file systems leave after a power cut: dropped, counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from holdfast.frozen import dataclass
from holdfast.history.values import YEAR_10000
from holdfast.history.verdicts import verdict_of
from holdfast.model import EndedProcess, FileSize, Verdict, signal_name


@dataclass(frozen=True)
class Created:
    time: float
    host: str
    user: str


@dataclass(frozen=True)
class PhaseBegan:
    time: float
    name: str
    text: str


@dataclass(frozen=True)
class EnvironmentUsed:
    time: float
    id: str
    packages: tuple[str, ...]
    built: bool = False
    seconds: float = 0.0
    python: str = ""


@dataclass(frozen=True)
class ContainerUsed:
    """`image` is the id, `name` what the container is called; `gpus`: whether it gets those of the machine."""

    time: float
    image: str
    image_name: str
    name: str
    gpus: bool = False


@dataclass(frozen=True)
class ScriptStarted:
    time: float


@dataclass(frozen=True)
class EndingBegan:
    time: float
    cause: str
    grace: float


@dataclass(frozen=True)
class ScriptExited:
    time: float
    code: int | None
    signal: int | None


@dataclass(frozen=True)
class ProcessesEnded:
    time: float
    processes: tuple[EndedProcess, ...]
    total: int


@dataclass(frozen=True)
class FilesListed:
    time: float
    outputs: tuple[FileSize, ...]
    others: tuple[FileSize, ...]
    others_count: int


@dataclass(frozen=True)
class Noted:
    time: float
    text: str


@dataclass(frozen=True)
class GpusJudged:
    time: float
    verdict: Verdict


@dataclass(frozen=True)
class RunEnded:
    """`reason` is the word as written: a later version may know more of them than `model.Reason` does."""

    time: float
    reason: str
    code: int | None
    signal: int | None
    detail: str


JournalEvent: TypeAlias = (
    Created
    | PhaseBegan
    | EnvironmentUsed
    | ContainerUsed
    | ScriptStarted
    | EndingBegan
    | ScriptExited
    | ProcessesEnded
    | FilesListed
    | Noted
    | GpusJudged
    | RunEnded
)


@dataclass(frozen=True)
class Journal:
    """`bad_lines` counts whole lines that could not be read."""

    events: tuple[JournalEvent, ...] = ()
    bad_lines: int = 0


def parse_journal(data: bytes) -> Journal:
    events: list[JournalEvent] = []
    bad = 0
    for line in data.split(b"\n")[:-1]:
        text = line.strip(b"\0 \t\r")
        bad += b"\0" in line
        if not text:
            continue
        try:
            event = _event(json.loads(text.decode("utf-8")))
        except (ValueError, TypeError, RecursionError):
            bad += b"\0" not in line  # one bad line is counted once
            continue
        if event is not None:
            events.append(event)
    return Journal(tuple(events), bad)


def _event(data: Any) -> JournalEvent | None:
    """The event of a line; None for one this version does not know; TypeError for what none would write."""
    if not isinstance(data, dict) or not isinstance(data.get("e"), str):
        raise TypeError("not an event")
    time = data.get("t")
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < YEAR_10000:
        raise TypeError("no time")
    read = _READERS.get(data["e"])
    return None if read is None else read(float(time), data)


def _created(time: float, data: Mapping[str, Any]) -> Created:
    return Created(time, _text(data, "host"), _text(data, "user"))


def _phase(time: float, data: Mapping[str, Any]) -> PhaseBegan:
    return PhaseBegan(time, _text(data, "name"), _text(data, "text"))


def _environment(time: float, data: Mapping[str, Any]) -> EnvironmentUsed:
    packages = tuple(each for each in _list(data, "packages") if isinstance(each, str))
    return EnvironmentUsed(
        time, _text(data, "id"), packages, data.get("built") is True, _seconds(data, "seconds"), _text(data, "python")
    )


def _container(time: float, data: Mapping[str, Any]) -> ContainerUsed:
    has_gpus = data.get("gpus") is True
    return ContainerUsed(time, _text(data, "image"), _text(data, "image_name"), _text(data, "name"), has_gpus)


def _started(time: float, _: Mapping[str, Any]) -> ScriptStarted:
    return ScriptStarted(time)


def _ending(time: float, data: Mapping[str, Any]) -> EndingBegan:
    return EndingBegan(time, _text(data, "cause"), _seconds(data, "grace"))


def _exited(time: float, data: Mapping[str, Any]) -> ScriptExited:
    return ScriptExited(time, _number(data, "code"), _number(data, "signal"))


def _swept(time: float, data: Mapping[str, Any]) -> ProcessesEnded:
    processes = []
    for each in _list(data, "processes"):
        match each:
            case [int(pid), str(name), str() | int() as signal, *_]:
                how = signal if isinstance(signal, str) else signal_name(signal)
                processes.append(EndedProcess(int(pid), name, how))
    return ProcessesEnded(time, tuple(processes), max(_number(data, "count") or 0, len(processes)))


def _files(time: float, data: Mapping[str, Any]) -> FilesListed:
    others = _sizes(data, "others")
    return FilesListed(time, _sizes(data, "outputs"), others, max(_number(data, "others_count") or 0, len(others)))


def _note(time: float, data: Mapping[str, Any]) -> Noted:
    return Noted(time, _text(data, "text"))


def _gpu(time: float, data: Mapping[str, Any]) -> GpusJudged:
    verdict = verdict_of(data)
    if verdict is None:
        raise TypeError("a verdict without a state")
    return GpusJudged(time, verdict)


def _ended(time: float, data: Mapping[str, Any]) -> RunEnded:
    if not isinstance(data.get("reason"), str):
        raise TypeError("an ending without a reason")
    return RunEnded(time, data["reason"], _number(data, "code"), _number(data, "signal"), _text(data, "detail"))


_READERS: Mapping[str, Callable[[float, Mapping[str, Any]], JournalEvent]] = {
    "created": _created,
    "phase": _phase,
    "environment": _environment,
    "container": _container,
    "started": _started,
    "ending": _ending,
    "exited": _exited,
    "swept": _swept,
    "files": _files,
    "note": _note,
    "gpu": _gpu,
    "ended": _ended,
}


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _seconds(data: Mapping[str, Any], key: str) -> float:
    value = data.get(key)
    return float(value) if isinstance(value, int | float) and 0 <= value < YEAR_10000 else 0.0


def _number(data: Mapping[str, Any], key: str) -> int | None:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if abs(value) < 2**63 else None


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _sizes(data: Mapping[str, Any], key: str) -> tuple[FileSize, ...]:
    found = []
    for each in _list(data, key):
        if isinstance(each, list) and len(each) >= 2 and isinstance(each[0], str) and isinstance(each[1], int):
            found.append(FileSize(each[0], int(each[1])))
    return tuple(found)
