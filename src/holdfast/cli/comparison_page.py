"""Two runs on a page: what differs, section by section, what is the same, and last the code, which may be long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from holdfast.cli import tables, terminal
from holdfast.cli.run_table import metric_text
from holdfast.cli.tables import Column
from holdfast.frozen import asdict
from holdfast.history.compare import Comparison, Difference
from holdfast.project.durations import short_duration
from holdfast.workbench.records.comparison import CodeDifference, RunComparison

DIFF_LINES = 60
FILES_SHOWN = 20
LINE_LENGTH = 200
"""Of the code's difference, without --code."""


def as_dict(comparison: RunComparison) -> dict[str, Any]:
    return asdict(comparison.records) | {"code": asdict(comparison.code)}


def draw(comparison: RunComparison, whole_code: bool, stream: TextIO) -> None:
    records = comparison.records
    sections = {
        "Run": tuple(_facts(comparison)),
        "Arguments": records.arguments,
        "Configuration": records.configuration,
        "Packages": records.packages,
    }
    for title, differences in sections.items():
        if differences:
            _draw_section(title, records, differences, stream)
    if records.metrics:
        _draw_metrics(records, stream)
    if records.packages_not_recorded:
        stream.write(f"Packages: not recorded for {' and '.join(records.packages_not_recorded)}.\n")
    same = [title.lower() for title, differences in sections.items() if not differences and title != "Run"]
    if records.packages_not_recorded:
        same.remove("packages")
    if comparison.code == CodeDifference():
        same.append("code")
    if same:
        stream.write(f"The same: {', '.join(same)}.\n")
    _draw_code(comparison.code, whole_code, stream)


def _facts(comparison: RunComparison) -> Iterator[Difference]:
    """As every page shows them: durations that differ by less than that are the same to people."""
    for each in comparison.records.facts:
        if each.name != "duration":
            yield each
            continue
        first, second = (short_duration(seconds) or None for seconds in comparison.durations)
        if first != second:
            yield Difference(each.name, first, second)


def _draw_section(title: str, records: Comparison, found: tuple[Difference, ...], stream: TextIO) -> None:
    columns = [Column("name", title), Column("first", records.first), Column("second", records.second)]
    missing = {"first": "-", "second": "-"}
    rows = [missing | {name: value for name, value in asdict(each).items() if value is not None} for each in found]
    tables.draw(rows, columns, stream)
    stream.write("\n")


def _draw_metrics(records: Comparison, stream: TextIO) -> None:
    columns = [
        Column("name", "Metrics"),
        Column("first", records.first, align="right", format=lambda value: metric_text(value) or "-"),
        Column("second", records.second, align="right", format=lambda value: metric_text(value) or "-"),
        Column("change", "change", align="right", format=lambda value: "" if value is None else f"{value:+.5g}"),
    ]
    tables.draw([asdict(each) for each in records.metrics], columns, stream)
    stream.write("\n")


def _draw_code(code: CodeDifference, whole: bool, stream: TextIO) -> None:
    if code == CodeDifference():
        return
    stream.write(terminal.style("Code", "bold", stream) + "\n")
    if code.problem:
        stream.write(f"It cannot be compared: {terminal.one_line(code.problem)}\n\n")
        return
    files = [("added", code.added), ("removed", code.removed), ("changed", code.changed)]
    names = [f"{word:8} {terminal.one_line(path)}" for word, paths in files for path in paths]
    shown = names if whole else names[:FILES_SHOWN]
    stream.writelines(f"{line}\n" for line in shown)
    if len(names) > len(shown):
        stream.write(f"… {len(names) - len(shown)} more files: --code\n")
    stream.write("\n")
    diff = [_harmless(line) for line in code.diff.splitlines()]
    lines = diff if whole else [_cut(line) for line in diff[:DIFF_LINES]]
    stream.writelines(f"{_painted(line, stream)}\n" for line in lines)
    if len(diff) > len(lines):
        stream.write(f"… {len(diff) - len(lines)} more lines: --code\n")
    stream.write("\n")


def _harmless(line: str) -> str:
    """A file may hold what steers a terminal; tabs are its indentation and stay."""
    return "\t".join(terminal.one_line(part) for part in line.split("\t"))


def _cut(line: str) -> str:
    more = len(line) - LINE_LENGTH
    return line if more <= 0 else f"{line[:LINE_LENGTH]}… {more} more characters: --code"


def _painted(line: str, stream: TextIO) -> str:
    """Colour only repeats what the first character says."""
    if line.startswith(("+++", "---", "@@")):
        return terminal.style(line, "bold", stream)
    if line.startswith(("+", "-")):
        return terminal.style(line, "good" if line[0] == "+" else "error", stream)
    return line
