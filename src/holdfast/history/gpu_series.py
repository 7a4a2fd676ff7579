"""What the GPUs did while a run ran: the looks that its verdict is made of, from the near copy of its samples."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf
from pathlib import Path
from typing import NamedTuple

from holdfast.farside.gpu.judge.evidence import looks
from holdfast.farside.gpu.samples import Following
from holdfast.frozen import dataclass
from holdfast.regular_files import open_regular

FILE = "gpu.jsonl"
PARTS = 1200
"""Parts of the time: twenty for each cell of the widest plot."""


class Point(NamedTuple):
    """Means from `since` to `time`, in seconds after the script's start: per cent and bytes. None is unknown."""

    since: float
    time: float
    utilisation: float | None
    memory: float | None


@dataclass(frozen=True)
class Series:
    """One device. `total` is its memory in bytes; `busiest` and `fullest` are the most that was seen."""

    number: int
    uuid: str
    name: str
    total: int | None
    points: tuple[Point, ...]
    busiest: float | None = None
    fullest: float | None = None


def read_series(folder: Path, started: float | None, ended: float | None = None) -> tuple[Series, ...]:
    """By number; empty for a run that was not watched. Any bytes are accepted. `started` and `ended` are the script's,
    by the clock of the run's machine."""
    file = Following(str(folder / FILE), lambda path: open_regular(path, follows_link=False))
    file.read_on()
    samples = file.samples()
    began = samples.began if samples.began is not None else min((each.time for each in samples.ticks), default=0.0)
    begin = began if started is None else started
    found = looks(samples, begin, inf if ended is None else ended)
    width = (found[-1].until - begin) / PARTS if found else 0.0
    devices = {each.number: _Device(*each[:4]) for each in samples.devices}
    for look in found if width > 0 else ():
        for place, share in _shares((look.since - begin) / width, (look.until - begin) / width, PARTS):
            for row in look.rows:
                if row.number not in devices:
                    devices[row.number] = _Device(row.number)
                devices[row.number].take(place, share, row.utilisation, row.memory)
    return tuple(devices[number].series(width) for number in sorted(devices))


def means(spans: Sequence[tuple[float, float, float | None]], end: float, count: int) -> list[float | None]:
    """`count` means over equal parts of the time up to `end`, of values that each hold for a span; None for a part of
    which nothing is known."""
    sums, shares = [0.0] * count, [0.0] * count
    for since, time, value in spans if end > 0 else ():
        for place, share in _shares(since * count / end, time * count / end, count) if value is not None else ():
            sums[place] += (value or 0.0) * share
            shares[place] += share
    return _ratios(sums, shares)


def _shares(since: float, until: float, count: int) -> list[tuple[int, float]]:
    """The parts, out of `count`, that a span covers, and how much of each. Times are counted in parts."""
    first, last = int(since), min(ceil(until), count)
    if last - first == 1:
        return [(first, until - since)]
    return [(place, min(until, place + 1) - max(since, place)) for place in range(first, last)]


def _ratios(sums: list[float], shares: list[float]) -> list[float | None]:
    return [total / share if share > 0 else None for total, share in zip(sums, shares, strict=True)]


class _Device:
    """Sums of what was seen in each part of the time, weighted by its share, and the shares."""

    def __init__(self, number: int, uuid: str = "", name: str = "", total: int | None = None) -> None:
        self._about = number, uuid, name, total
        self._busy, self._busy_shares = [0.0] * PARTS, [0.0] * PARTS
        self._memory, self._memory_shares = [0.0] * PARTS, [0.0] * PARTS
        self._busiest: float | None = None
        self._fullest: float | None = None

    def take(self, place: int, share: float, busy: int | None, memory: int | None) -> None:
        if busy is not None:
            self._busy[place] += busy * share
            self._busy_shares[place] += share
            if self._busiest is None or busy > self._busiest:
                self._busiest = busy
        if memory is not None:
            self._memory[place] += memory * share
            self._memory_shares[place] += share
            if self._fullest is None or memory > self._fullest:
                self._fullest = memory

    def series(self, width: float) -> Series:
        values = zip(_ratios(self._busy, self._busy_shares), _ratios(self._memory, self._memory_shares), strict=True)
        points = tuple(Point(place * width, (place + 1) * width, *each) for place, each in enumerate(values))
        return Series(*self._about, points if width > 0 else (), self._busiest, self._fullest)
