"""What the GPUs did while a run ran: the near copy of its samples, device by device, and their means over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.farside.gpu.watching import samples
from holdfast.frozen import dataclass

FILE = "gpu.jsonl"
GAP = 3.0
"""Periods without a look after which nothing is known of the time between."""


class Point(NamedTuple):
    """What was seen at `time`, seconds after the script's start, of the time since `since`. Per cent and bytes; None is
    not known."""

    since: float
    time: float
    utilisation: float | None
    memory: float | None


@dataclass(frozen=True)
class Series:
    """One device. `total` is its memory in bytes."""

    number: int
    uuid: str
    name: str
    total: int | None
    points: tuple[Point, ...]


def read_series(folder: Path, started: float | None) -> tuple[Series, ...]:
    """By number. Any bytes are accepted; a run that nobody watched has none. `started`: when the script did, by the
    clock of the run's machine."""
    try:
        found = samples.read((folder / FILE).read_bytes())
    except (OSError, ValueError, ArithmeticError, RecursionError):
        return ()
    began = started if started is not None else found.began
    if began is None:
        return ()
    return tuple(
        Series(each.number, each.uuid, each.name, _whole(each.total), tuple(_points(each.number, found.ticks, began)))
        for each in sorted(found.devices, key=lambda device: device.number)
    )


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


def _points(number: int, ticks: Sequence[samples.Tick], began: float) -> list[Point]:
    found = []
    last = 0.0
    for tick in ticks:
        now = _amount(tick.time - began)
        if now is None or now <= last:
            continue
        since = max(last, now - GAP * samples.period(now))
        rows = [row for row in tick.rows if row.number == number]
        found += [Point(since, now, _amount(row.utilisation), _amount(row.memory)) for row in rows[:1]]
        last = now
    return found


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return float(value)


def _whole(value: object) -> int | None:
    found = _amount(value)
    return None if found is None else int(found)
