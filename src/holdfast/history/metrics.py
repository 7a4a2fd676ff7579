"""What a run logged: the files that `holdfast.log` wrote, one per process, read as one.

A file may be growing, may end in a torn line, and may have been damaged by a crash: whole lines count, a line
that cannot be read is left out, and NUL bytes are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.codec import LARGEST, Malformed, decode
from holdfast.errors import StorageError
from holdfast.farside.system.whole_lines import WholeLines
from holdfast.frozen import dataclass

MetricValue: TypeAlias = "bool | int | float | str | list[MetricValue]"
"""A list holds numbers only. It is a list and not a tuple because queries take lists."""
Record: TypeAlias = "tuple[float, str, MetricValue, int | None]"
"""Time, name, value and step."""


@dataclass(frozen=True)
class MetricSummary:
    """`minimum` and `maximum` are of the numbers, without NaN; None where there are none."""

    name: str
    last: MetricValue
    minimum: int | float | None
    maximum: int | float | None
    count: int
    last_step: int | None


def summarize(folder: Path) -> dict[str, MetricSummary]:
    """Each metric of the run in one line, without keeping its points in memory."""
    found: dict[str, _Tally] = {}
    for file in _files(folder):
        own: dict[str, _Tally] = {}
        for time, name, value, step in records(file):
            tally = own.get(name)
            if tally is None:
                tally = own[name] = _Tally(time)
            tally.add(time, value, step)
        for name, tally in own.items():
            earlier = found.get(name)
            found[name] = tally if earlier is None else earlier.joined(tally)
    return {name: tally.summary(name) for name, tally in found.items()}


def final_values(folder: Path) -> dict[str, MetricValue]:
    """The last value of each metric, as tables show it."""
    return {name: summary.last for name, summary in summarize(folder).items()}


def records(file: Path) -> Iterator[Record]:
    """What one process logged, in the order of its calls."""
    for lines in _batches(file):
        for record in _parsed(lines):
            if record is not None:
                yield record


_BATCH = 1 << 18
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Tally:
    """A metric's summary while it is being made, over one process and then over several."""

    __slots__ = ("clock", "count", "last", "last_step", "maximum", "minimum")

    def __init__(self, time: float) -> None:
        self.clock = time
        self.count = 0
        self.last: MetricValue = 0
        self.last_step: int | None = None
        self.minimum: int | float | None = None
        self.maximum: int | float | None = None

    def add(self, time: float, value: MetricValue, step: int | None) -> None:
        if time > self.clock:
            self.clock = time
        self.count += 1
        self.last, self.last_step = value, step
        if (type(value) is float or type(value) is int) and value == value:
            if self.minimum is None or self.maximum is None:
                self.minimum = self.maximum = value
            elif value < self.minimum:
                self.minimum = value
            elif value > self.maximum:
                self.maximum = value

    def joined(self, later: _Tally) -> _Tally:
        """Both together. Of last values at the same time, the later file's counts."""
        last = later if later.clock >= self.clock else self
        joined = _Tally(last.clock)
        joined.count = self.count + later.count
        joined.last, joined.last_step = last.last, last.last_step
        joined.minimum = min((each.minimum for each in (self, later) if each.minimum is not None), default=None)
        joined.maximum = max((each.maximum for each in (self, later) if each.maximum is not None), default=None)
        return joined

    def summary(self, name: str) -> MetricSummary:
        return MetricSummary(name, self.last, self.minimum, self.maximum, self.count, self.last_step)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    except OSError as error:
        raise _unreadable(error, folder) from error


def _batches(file: Path) -> Iterator[list[bytes]]:
    """Whole lines, some hundred kilobytes at a time, up to a line that has no end yet."""
    whole = WholeLines()
    try:
        with file.open("rb") as stream:
            while data := stream.read(_BATCH):
                yield whole.feed(data)
    except OSError as error:
        raise _unreadable(error, file) from error


def _unreadable(error: OSError, path: Path) -> StorageError:
    return StorageError(
        f"The metrics in `{path}` cannot be read: {error.strerror}.",
        f"Look at its owner and permissions: ls -ld {path}",
    )


def _parsed(lines: list[bytes]) -> Iterator[Record | None]:
    """The record of each line, None if it cannot be read; empty lines are skipped."""
    if any(b"\0" in line for line in lines):
        lines = [line.replace(b"\0", b"") for line in lines]
    lines = [line for line in lines if line and not line.isspace()]
    try:
        # One call for many lines is quicker. Were damaged lines to make a whole one, the count would differ.
        loaded = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        loaded = []
    if len(loaded) != len(lines):
        loaded = [_loaded(line) for line in lines]
    return map(_record, loaded)


def _loaded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _record(loaded: Any) -> Record | None:
    try:
        time, name, value, step = loaded["t"], loaded["n"], loaded["v"], loaded["s"]
        if "f" in loaded:
            value = _with_not_finite(value)
    except (TypeError, KeyError, RecursionError):
        return None
    kind = type(value)
    good = kind is float or kind is str or kind is bool or (kind is int and -LARGEST < value < LARGEST)
    good = good or (kind is list and _is_list(value))
    good = good and (step is None or (type(step) is int and -LARGEST < step < LARGEST))
    if good and type(name) is str and type(time) in (float, int) and -LARGEST < time < LARGEST:
        return time, name, value, step
    return None


def _with_not_finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_not_finite(each) for each in value]
    return _NOT_FINITE[value] if isinstance(value, str) else value


def _is_list(values: list[Any]) -> bool:
    """Of numbers, and no deeper than the codec takes it."""
    try:
        return all(map(_is_number, decode(tuple[Any, ...], values)))
    except Malformed:
        return False


def _is_number(value: Any) -> bool:
    return type(value) in (float, int, bool) or (type(value) is list and all(map(_is_number, value)))
