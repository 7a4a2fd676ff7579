"""The journal as values: whole lines of bytes in, frozen events out. Any bytes are accepted, nothing raises.

A line that cannot be read is counted and skipped. A last line without its newline is still being written and is left
for later. Zero bytes are what some file systems leave after a power cut: dropped, counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from holdfast.codec import Between, recover
from holdfast.frozen import dataclass, replace
from holdfast.model import YEAR_10000, EndedProcess, FileSize, UseState, Verdict, signal_name

Seconds = Annotated[float, Between(0, YEAR_10000)]


@dataclass(frozen=True)
class Created:
    """`engine` is the one that the run waits for; empty for a run that starts at once."""

    time: float
    host: str = ""
    user: str = ""
    engine: str = ""


@dataclass(frozen=True)
class Queued:
    """`text` is what the engine says."""

    time: float
    engine: str = ""
    text: str = ""


@dataclass(frozen=True)
class PhaseBegan:
    time: float
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class EnvironmentUsed:
    time: float
    id: str = ""
    packages: tuple[str, ...] = ()
    built: bool = False
    seconds: Seconds = 0.0
    python: str = ""


@dataclass(frozen=True)
class ContainerUsed:
    """`image` is the id, `name` the container's; `gpus`: whether it has those of the machine."""

    time: float
    image: str = ""
    image_name: str = ""
    name: str = ""
    gpus: bool = False


@dataclass(frozen=True)
class ScriptStarted:
    time: float


@dataclass(frozen=True)
class EndingBegan:
    time: float
    cause: str = ""
    grace: Seconds = 0.0


@dataclass(frozen=True)
class ScriptExited:
    time: float
    code: int | None = None
    signal: int | None = None


@dataclass(frozen=True)
class ProcessesEnded:
    time: float
    processes: tuple[EndedProcess, ...]
    total: int


@dataclass(frozen=True)
class FilesListed:
    time: float
    outputs: tuple[FileSize, ...] = ()
    others: tuple[FileSize, ...] = ()
    others_count: int = 0


@dataclass(frozen=True)
class JournalNote:
    time: float
    text: str = ""


@dataclass(frozen=True)
class GpusJudged:
    time: float
    verdict: Verdict


@dataclass(frozen=True)
class RunEnded:
    """`reason` is the word as written: a later version may know more of them than `model.Reason` does."""

    time: float
    reason: str
    code: int | None = None
    signal: int | None = None
    detail: str = ""


JournalEvent: TypeAlias = (
    Created
    | Queued
    | PhaseBegan
    | EnvironmentUsed
    | ContainerUsed
    | ScriptStarted
    | EndingBegan
    | ScriptExited
    | ProcessesEnded
    | FilesListed
    | JournalNote
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
    """The event of a line; None for one that this version does not know. TypeError for what no version writes."""
    if not isinstance(data, dict) or not isinstance(data.get("e"), str):
        raise TypeError("not an event")
    time = data.get("t")
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < YEAR_10000:
        raise TypeError("no time")
    if data["e"] == "gpu":
        return _gpu(float(time), data)
    if data["e"] == "swept":
        return _swept(float(time), data)
    kind = _KINDS.get(data["e"])
    event = None if kind is None else recover(kind, {**data, "time": time})
    if isinstance(event, FilesListed) and event.others_count < len(event.others):
        event = replace(event, others_count=len(event.others))
    return event


def _swept(time: float, data: Mapping[str, Any]) -> ProcessesEnded:
    processes = []
    for each in data["processes"] if isinstance(data.get("processes"), list) else ():
        match each:
            case [int(pid), str(name), str() | int() as signal, *_]:
                how = signal if isinstance(signal, str) else signal_name(signal)
                processes.append(EndedProcess(int(pid), name, how))
    count = data.get("count")
    return ProcessesEnded(time, tuple(processes), max(count if type(count) is int else 0, len(processes)))


def _gpu(time: float, data: Mapping[str, Any]) -> GpusJudged:
    """A state that this version does not know counts as unknown."""
    if not isinstance(data.get("state"), str):
        raise TypeError("a verdict without a state")
    state = data["state"] if data["state"] in _STATES else UseState.UNKNOWN.value
    verdict = recover(Verdict, {**data, "state": state})
    return GpusJudged(time, replace(verdict, spells=tuple(each for each in verdict.spells if each[0] <= each[1])))


_STATES = {each.value for each in UseState}
_KINDS: Mapping[str, type[JournalEvent]] = {
    "created": Created,
    "queued": Queued,
    "phase": PhaseBegan,
    "environment": EnvironmentUsed,
    "container": ContainerUsed,
    "started": ScriptStarted,
    "ending": EndingBegan,
    "exited": ScriptExited,
    "files": FilesListed,
    "note": JournalNote,
    "ended": RunEnded,
}
