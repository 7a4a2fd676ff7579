"""The result of a benchmark row: tables of figures, each compared with its bar."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from measuring import Figures


class Verdict(Enum):
    MET = "met"
    MISSED = "missed"
    UNKNOWN = "not measured"
    NO_BAR = ""


@dataclass(frozen=True)
class Bar:
    """`limit` is for the ratio (ours to the other) on another tool's line, and for the figure itself on our line."""

    limit: float
    at_most: bool = True

    def verdict(self, value: float) -> Verdict:
        return Verdict.MET if (value <= self.limit) == self.at_most or value == self.limit else Verdict.MISSED


@dataclass(frozen=True)
class Line:
    """One thing that was measured. `is_peer` False: another figure of Holdfast's, which is not compared."""

    name: str
    figures: Figures
    bar: Bar | None = None
    is_peer: bool = True


@dataclass(frozen=True)
class Table:
    """`ours` is what every line of `others` is compared with. `scale` turns figures into `unit`."""

    title: str
    unit: str
    scale: float
    ours: Line
    others: tuple[Line, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Row:
    """`how` says what was done, in sentences; `name` is what `--only` takes."""

    name: str
    title: str
    how: str
    tables: tuple[Table, ...]
    moment: str = ""
    """When it was measured, and how busy the machine was just before."""


def ratio(table: Table, line: Line) -> float | None:
    """Ours divided by the other's, or None if one of them is missing or there is nothing to compare."""
    if not line.is_peer or not table.ours.figures.values or not line.figures.values or line.figures.median == 0:
        return None
    return table.ours.figures.median / line.figures.median


def verdict(table: Table, line: Line) -> Verdict:
    if line.bar is None:
        return Verdict.NO_BAR
    if line is table.ours:
        value = table.ours.figures.median * table.scale if table.ours.figures.values else None
    else:
        value = ratio(table, line)
    return Verdict.UNKNOWN if value is None else line.bar.verdict(value)


def lines(
    names: Mapping[str, Bar | None], figures: Mapping[str, Figures], own: Collection[str] = ()
) -> tuple[Line, ...]:
    """The lines of a table in the order of `names`, each with its bar. `own` are figures of ours."""
    return tuple(Line(name, figures[name], bar, name not in own) for name, bar in names.items())
