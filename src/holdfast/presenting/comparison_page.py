"""Two runs beside each other: what differs, section by section, what is the same, and last the code, which may be
long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.frozen import asdict, dataclass
from holdfast.history.run_differences import Comparison, Difference
from holdfast.presenting.amounts import metric_text
from holdfast.presenting.lines import Column
from holdfast.project.quantities import short_duration
from holdfast.workbench.records.comparison import CodeDifference, RunComparison


@dataclass(frozen=True)
class Section:
    columns: list[Column]
    rows: list[dict[str, Any]]


def as_dict(comparison: RunComparison) -> dict[str, Any]:
    return asdict(comparison.records) | {"code": asdict(comparison.code)}


def sections(comparison: RunComparison) -> Iterator[Section]:
    """Of what differs; the code is not among them."""
    records = comparison.records
    for title, differences in _differences(comparison).items():
        if differences:
            columns = [Column("name", title), Column("first", records.first), Column("second", records.second)]
            yield Section(columns, [_row(each) for each in differences])
    if records.metrics:
        yield Section(_metric_columns(records), [asdict(each) for each in records.metrics])


def sameness(comparison: RunComparison) -> Iterator[str]:
    """What could not be compared, and what is the same."""
    missing = comparison.records.packages_not_recorded
    if missing:
        yield f"Packages: not recorded for {' and '.join(missing)}."
    same = [title.lower() for title, found in _differences(comparison).items() if not found and title != "Run"]
    if missing:
        same.remove("packages")
    if comparison.code == CodeDifference():
        same.append("code")
    if same:
        yield f"The same: {', '.join(same)}."


def changed_files(code: CodeDifference) -> list[tuple[str, str]]:
    """What became of each file, and its path."""
    files = [("added", code.added), ("removed", code.removed), ("changed", code.changed)]
    return [(word, path) for word, paths in files for path in paths]


def _differences(comparison: RunComparison) -> dict[str, tuple[Difference, ...]]:
    records = comparison.records
    return {
        "Run": tuple(_facts(comparison)),
        "Arguments": records.arguments,
        "Configuration": records.configuration,
        "Packages": records.packages,
    }


def _facts(comparison: RunComparison) -> Iterator[Difference]:
    """As every page shows them: durations that differ by less than that are the same to people."""
    for each in comparison.records.facts:
        if each.name != "duration":
            yield each
            continue
        first, second = (short_duration(seconds) or None for seconds in comparison.durations)
        if first != second:
            yield Difference(each.name, first, second)


def _row(difference: Difference) -> dict[str, Any]:
    known = {name: value for name, value in asdict(difference).items() if value is not None}
    return {"first": "-", "second": "-"} | known


def _metric_columns(records: Comparison) -> list[Column]:
    return [
        Column("name", "Metrics"),
        Column("first", records.first, align="right", format=lambda value: metric_text(value) or "-"),
        Column("second", records.second, align="right", format=lambda value: metric_text(value) or "-"),
        Column("change", "change", align="right", format=lambda value: "" if value is None else f"{value:+.5g}"),
    ]
