"""The journal as values: whole lines of bytes in, frozen events out. Any bytes are accepted, nothing raises.

A line that cannot be read is counted and skipped. A last line without its newline is still being written and is left
for later. Zero bytes are what some file systems leave after a power cut: dropped, counted. A journal may be long:
`JournalReader` takes it in pieces and holds none of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

from holdfast.codec import Between, recover
from holdfast.farside.system.whole_lines import WholeLines
from holdfast.frozen import dataclass, replace
from holdfast.model import YEAR_10000, EndedProcess, UseState, Verdict, signal_name
from holdfast.written_files import FileSize

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


class _SweptProcess(NamedTuple):
    """Earlier versions wrote the number of the signal."""

    pid: int
    name: str
    signal: str | int


@dataclass(frozen=True)
class _Swept:
    processes: tuple[_SweptProcess, ...] = ()
    count: int = 0


class JournalReader:
    """`bad_lines` counts whole lines that could not be read, until now; `lines` those that were parsed."""

    def __init__(self) -> None:
        self._lines = WholeLines()
        self._bad = self.lines = 0

    @property
    def bad_lines(self) -> int:
        return self._bad + self._lines.dropped

    def feed(self, data: bytes) -> Iterator[JournalEvent]:
        """The events of the lines that are whole now."""
        for line in self._lines.feed(data):
            text = line.strip(b"\0 \t\r")
            self._bad += b"\0" in line
            if not text:
                continue
            self.lines += 1
            try:
                event = _event(json.loads(text.decode("utf-8")))
            except (ValueError, TypeError, RecursionError):
                self._bad += b"\0" not in line  # one bad line is counted once
                continue
            if event is not None:
                yield event


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
    found = recover(_Swept, data)
    processes = tuple(
        EndedProcess(each.pid, each.name, each.signal if isinstance(each.signal, str) else signal_name(each.signal))
        for each in found.processes
    )
    return ProcessesEnded(time, processes, max(found.count, len(processes)))


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
