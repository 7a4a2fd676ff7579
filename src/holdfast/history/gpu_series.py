"""What the GPUs did while a run ran: the near copy of its samples, folded into a plot's worth of times for each device.
However long the run was, that takes a second and little memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from holdfast.farside.gpu.watching import samples
from holdfast.frozen import dataclass

FILE = "gpu.jsonl"
GAP = 3.0
"""Periods without a look after which nothing is known of the time between."""
STEP = 300.0
"""Periods without a look, and without a word why, after which somebody has set the clock."""
WHOLE = 8 << 20
"""Bytes of looks that are read in a blink: of a file that has more, some are left out."""
LONGEST_LINE = 1 << 16
PARTS, NARROWEST = 2048, 1 / 16
"""Of time, for each device, and seconds of each in a run that has just begun."""
AFTER = 64
"""Looks after the script's end that are believed to be: with more of them it is the clock that was set."""
DEVICES = 64
"""More are in no machine."""


class Point(NamedTuple):
    """The means of what was seen from `since` to `time`, seconds after the script's start. Per cent and bytes; None is
    not known."""

    since: float
    time: float
    utilisation: float | None
    memory: float | None


@dataclass(frozen=True)
class Series:
    """One device. `total` is its memory in bytes; `busiest` and `fullest` are the most that was seen. It is made of one
    look in `every`."""

    number: int
    uuid: str
    name: str
    total: int | None
    points: tuple[Point, ...]
    busiest: float | None = None
    fullest: float | None = None
    every: int = 1


def read_series(folder: Path, started: float | None, ended: float | None = None) -> tuple[Series, ...]:
    """By number. Any bytes are accepted; a run that nobody watched has none. `started`, `ended`: when the script did,
    by the clock of the run's machine."""
    try:
        with (folder / FILE).open("rb") as source:
            every = _every(os.fstat(source.fileno()).st_size)
            fold = _Fold(started, ended, every)
            for found in _documents(source, every):
                fold.take(found)
    except OSError:
        return ()
    return fold.series()


def means(spans: Sequence[tuple[float, float, float | None]], end: float, count: int) -> list[float | None]:
    """`count` means over equal parts of the time up to `end`, of values that each hold from one time to another; None
    for a part of which nothing is known."""
    part = end / count
    sums, weights = [0.0] * count, [0.0] * count
    for begin, until, value in spans:
        if value is None or part <= 0:
            continue
        first, last = max(0, int(begin / part)), min(count - 1, int(until / part))
        for index in range(first, last + 1):
            overlap = min(until, (index + 1) * part) - max(begin, index * part)
            if overlap > 0:
                sums[index] += value * overlap
                weights[index] += overlap
    return [total / weight if weight else None for total, weight in zip(sums, weights, strict=True)]


def _every(size: int) -> int:
    """Odd: some things are asked for in every second or fourth look only."""
    parts = -(-size // WHOLE)
    return max(1, parts + 1 - parts % 2)


def _documents(source: BinaryIO, every: int) -> Iterator[dict[str, Any]]:
    """What stands in the lines, one look in `every`. Many lines at once: the parser is entered for all of them."""
    lines = _chosen(source, every)
    while portion := list(islice(lines, 500)):
        found = _document(b"[" + b",".join(portion) + b"]")
        if not isinstance(found, list) or len(found) != len(portion):  # one of them makes no sense
            found = list(map(_document, portion))
        yield from (each for each in found if isinstance(each, dict))


def _chosen(source: BinaryIO, every: int) -> Iterator[bytes]:
    looks = 0
    is_torn = False
    while line := source.readline(LONGEST_LINE):
        was_torn, is_torn = is_torn, not line.endswith(b"\n")
        if was_torn or is_torn:
            continue
        if b'"d":' in line:
            looks += 1
            if looks % every:
                continue
        yield line


def _document(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


class _Known(NamedTuple):
    """What a device is said to be."""

    uuid: str = ""
    name: str = ""
    total: int | None = None


class _Fold:
    """What the lines say together. Times are the script's: a clock that is set while it runs does not move them."""

    def __init__(self, started: float | None, ended: float | None, every: int) -> None:
        self._started, self._ended, self._every = started, ended, every
        self._rows: list[Any] = []
        self._after: list[tuple[float, list[Any]]] = []
        self._devices: dict[int, _Known] = {}
        self._cells: dict[int, _Cells] = {}
        self._width = NARROWEST
        self._offset = self._last = 0.0
        self._has_looked = False
        self._excused = 0.0

    def take(self, found: dict[str, Any]) -> None:
        rows, moment = found.get("d"), _amount(found.get("t"))
        if isinstance(rows, list):
            if moment is not None and (self._ended is None or moment <= self._ended):
                self._look(moment, rows)
            elif moment is not None:
                self._look_later(moment, rows)
        elif "began" in found:
            self._started = _amount(found["began"]) if self._started is None else self._started
        elif isinstance(found.get("devices"), list):
            self._learn(found["devices"])
        elif "found" in found:  # nothing is written while every device is lost
            self._excused = float("inf")
        elif "skipped" in found:
            self._excused += _amount(found["skipped"]) or 0.0

    def series(self) -> tuple[Series, ...]:
        """What was seen last while the script ran holds until its end, and not what was seen after it."""
        if self._ended is not None and self._after and self._rows:
            rest = self._ended - (self._started or 0.0) - self._offset - self._last
            if 0 < rest <= GAP * samples.period(max(0.0, self._last)) * self._every:
                self._look(self._ended, self._rows)
        numbers = sorted(self._devices.keys() | self._cells.keys())
        return tuple(self._series(each) for each in numbers)

    def _series(self, number: int) -> Series:
        cells = self._cells.get(number) or _Cells()
        points = tuple(cells.points(self._width, self._last))
        seen = (cells.busiest, cells.fullest)
        return Series(number, *self._devices.get(number, _Known()), points, *seen, self._every)

    def _learn(self, devices: list[Any]) -> None:
        for each in devices[:DEVICES]:
            number = _whole(each.get("number")) if isinstance(each, dict) else None
            if number is not None and (number in self._devices or len(self._devices) < DEVICES):
                total = _whole(each.get("total"))
                self._devices[number] = _Known(_text(each.get("uuid")), _text(each.get("name")), total)

    def _look_later(self, moment: float, rows: list[Any]) -> None:
        """After the script's end, if there are few of them."""
        self._after.append((moment, rows))
        if len(self._after) > AFTER:
            self._ended = None
            for each in self._after:
                self._look(*each)

    def _look(self, moment: float, rows: list[Any]) -> None:
        if self._started is None:
            self._started = moment
        last, now = self._last, self._time(moment)
        period = samples.period(now) * self._every
        since = max(0.0, last, now - GAP * period)
        self._last, self._excused, self._has_looked, self._rows = now, 0.0, True, rows
        if now <= 0:
            return  # what was seen before the script began is not its affair
        while now >= self._width * PARTS:
            self._width *= 2
            for cells in self._cells.values():
                cells.halve()
        for row in rows:
            if isinstance(row, list) and len(row) > 2:
                number = _whole(row[0])
                if number is not None:
                    self._cells_of(number).add(since / self._width, now / self._width, row[1], row[2])

    def _time(self, moment: float) -> float:
        """When that was, in seconds after the script's start: never before the look before it, and not so far after it
        that it was the clock that went on."""
        now = moment - (self._started or 0.0) - self._offset
        period = samples.period(max(0.0, self._last)) * self._every
        most = (STEP + self._excused) * period
        is_ahead = now > max(0.0, self._last) + most
        is_back = now <= self._last if self._has_looked else now < -most
        if is_ahead or is_back:
            self._offset += now - (self._last + period)
            now = self._last + period
        return now

    def _cells_of(self, number: int) -> _Cells:
        if number not in self._cells and len(self._cells) < DEVICES:
            self._cells[number] = _Cells()
        return self._cells.get(number) or _Cells()


class _Cells:
    """The parts of the time of one device: what was seen in each times how long, and how long. Both in parts."""

    def __init__(self) -> None:
        self._busy, self._busy_time = [0.0] * PARTS, [0.0] * PARTS
        self._memory, self._memory_time = [0.0] * PARTS, [0.0] * PARTS
        self._held: float | None = None
        self._is_seen = False
        self.busiest: float | None = None
        self.fullest: float | None = None

    def add(self, since: float, until: float, busy: object, memory: object) -> None:
        """Memory is asked for in turn with other things, and carried on."""
        self._is_seen = True
        percent, held = _amount(busy), _amount(memory)
        if percent is not None:
            if self.busiest is None or percent > self.busiest:
                self.busiest = percent
            _spread(self._busy, self._busy_time, since, until, percent)
        if held is None:
            held = self._held
        if held is not None:
            self._held = held
            if self.fullest is None or held > self.fullest:
                self.fullest = held
            _spread(self._memory, self._memory_time, since, until, held)

    def halve(self) -> None:
        """Each part is twice as long as before, so there are half as many."""
        for cells in (self._busy, self._busy_time, self._memory, self._memory_time):
            cells[:] = [(a + b) / 2 for a, b in zip(cells[::2], cells[1::2], strict=True)] + [0.0] * (PARTS // 2)

    def points(self, width: float, end: float) -> Iterator[Point]:
        known = [
            Point(place * width, min(end, (place + 1) * width), _ratio(busy, busy_time), _ratio(memory, memory_time))
            for place, (busy, busy_time, memory, memory_time) in enumerate(
                zip(self._busy, self._busy_time, self._memory, self._memory_time, strict=True)
            )
            if busy_time or memory_time
        ]
        if self._is_seen and not known:
            known = [Point(0.0, end, None, None)]
        yield from known


def _spread(sums: list[float], times: list[float], since: float, until: float, value: float) -> None:
    first, last = int(since), int(until)
    if first == last:
        sums[first] += value * (until - since)
        times[first] += until - since
        return
    for place in range(first, last + 1):
        share = min(until, place + 1) - max(since, place)
        sums[place] += value * share
        times[place] += share


def _ratio(total: float, time: float) -> float | None:
    return total / time if time else None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return float(value)


def _whole(value: object) -> int | None:
    found = _amount(value)
    return None if found is None else int(found)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
