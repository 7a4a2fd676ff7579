"""What the GPUs did while a run went on, drawn in characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from holdfast.cli import terminal
from holdfast.history.gpu_series import Series, means
from holdfast.model import Run, UseState, Verdict
from holdfast.presenting.lines import GIB
from holdfast.project.quantities import short_duration

DEVICES_SHOWN = 8
CELLS, NARROW = 60, 20
"""The widest plot, which a pipe gets, and the narrowest that has words beside it."""
BLOCKS, UNKNOWN_BLOCK = "▁▂▃▄▅▆▇█", "·"
LETTERS, UNKNOWN_LETTER = "_.:-=+*#", "?"
"""Nothing, then seven heights; letters are for terminals that cannot show blocks."""


def gpus_over_time(run: Run, series: Sequence[Series], stream: TextIO) -> Iterator[str]:
    """For the page of a run; empty for a run that asked for no GPU and used none."""
    verdict = run.gpu
    if verdict is not None and verdict.state is UseState.NOT_ASKED:
        return
    shown = _worth_showing(verdict, series)
    room = terminal.width() - _PAGE_MARGIN if terminal.is_terminal(stream) else CELLS + _AROUND
    yield from plot(shown[:DEVICES_SHOWN], run.duration, room, _can_show(stream, BLOCKS + UNKNOWN_BLOCK))
    if len(shown) > DEVICES_SHOWN:
        yield f"… {len(shown) - DEVICES_SHOWN} more GPUs"


def plot(devices: Sequence[Series], duration: float | None, room: int, has_blocks: bool) -> Iterator[str]:
    """How busy each device was and its memory, with the time below. `room` is in columns: where there are few, labels
    stand above the cells and not beside them."""
    end = max([duration or 0.0, *(device.points[-1].time for device in devices if device.points)], default=0.0)
    is_narrow = room - _AROUND < NARROW
    cells = max(1, min(CELLS, room if is_narrow else room - _AROUND))
    line = _lines if is_narrow else _line
    if end <= 0 or not any(device.points for device in devices):
        return
    is_unknown = False
    for device in devices:
        busy = means([(each.since, each.time, each.utilisation) for each in device.points], end, cells)
        memory = means([(each.since, each.time, each.memory) for each in device.points], end, cells)
        is_unknown |= None in busy or None in memory
        peak = "not known" if device.busiest is None else f"peak {device.busiest:.0f} %"
        yield from line(f"GPU {device.number} busy", _bar(busy, 100.0, has_blocks), peak)
        most = device.total or device.fullest or 0.0
        yield from line(f"GPU {device.number} memory", _bar(memory, most, has_blocks), _peak_memory(device))
    unknown = UNKNOWN_BLOCK if has_blocks else UNKNOWN_LETTER
    legend = f"{unknown} not known" if is_unknown else ""
    yield from (line("", _axis(end, cells), "" if is_narrow else legend))
    yield from [legend] if is_narrow and legend else []


_LABEL = 13
_AROUND = _LABEL + 2 + 25
"""Columns beside the cells: the label and the peak."""
_PAGE_MARGIN = 16
"""The longest title of a run's page, and the gap."""


def _worth_showing(verdict: Verdict | None, series: Sequence[Series]) -> list[Series]:
    """The devices that the run had or used; all of them if it had none."""
    mine = {each.uuid for each in verdict.devices if each.is_leased or each.first_use is not None} if verdict else set()
    return [each for each in series if each.uuid in mine] or list(series)


def _line(label: str, cells: str, after: str) -> list[str]:
    return [f"{label:<{_LABEL}} {cells} {after}".rstrip()]


def _lines(label: str, cells: str, after: str) -> list[str]:
    above = ", ".join(each for each in (label, after) if each)
    return [*([above] if above else []), cells]


def _bar(values: Sequence[float | None], top: float, has_blocks: bool) -> str:
    heights, unknown = (BLOCKS, UNKNOWN_BLOCK) if has_blocks else (LETTERS, UNKNOWN_LETTER)
    return "".join(unknown if each is None else heights[_height(each, top)] for each in values)


def _height(value: float, top: float) -> int:
    """0 is for nothing at all; anything more is at least 1."""
    if value <= 0 or top <= 0:
        return 0
    return 1 + min(6, int(7 * value / top))


def _peak_memory(device: Series) -> str:
    of = "" if device.total is None else f" of {device.total / GIB:.1f}"
    return "not known" if device.fullest is None else f"peak {device.fullest / GIB:.1f}{of} GiB"


def _axis(end: float, cells: int) -> str:
    """Begin, middle where there is room, and end."""
    first, middle, last = "0s", short_duration(end / 2), short_duration(end)
    if cells < len(first) + len(last) + 1:
        return last.rjust(cells)
    line = first.ljust(cells - len(last)) + last
    begin = (cells - len(middle)) // 2
    if begin > len(first) + 1 and begin + len(middle) < cells - len(last) - 1:
        line = line[:begin] + middle + line[begin + len(middle) :]
    return line


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
