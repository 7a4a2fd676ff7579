"""The page `docs/benchmarks.md`: a pure function of what was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from machine import Machine
from results import Bar, Line, Row, Table, Verdict, ratio, verdict

COMMAND = ".venv/bin/python bench/run.py"
_SUMMARY = "Summary"

_INTRODUCTION = """\
# Benchmarks

`make bench` writes this page; do not edit it by hand. Everything is measured side by side in one run: each round
measures every tool once, in turns, so that other work on the machine slows all of them alike. Figures are medians of
the rounds; *spread* is half the distance between the quartiles. *Ratio* is Holdfast's figure divided by the other's.
A row may be newer than the rest: `bench/run.py --only ROW --update` puts it into the page, and each says when it was
measured."""

_CONDITIONS = """\
Each tool is installed alone, with uv, into its own environment at a pinned version, Holdfast as a wheel of this tree.
Each is called as from a shell in which that environment is active: its programs and its Python come first on `PATH`,
so no version manager's shim is in between. `VIRTUAL_ENV` and all `PYTHON*` variables, such as
`PYTHONDONTWRITEBYTECODE`, are unset for all. Rounds that do not count come first, so that bytecode is compiled and
files are in memory. Every tool has an empty home and its own project folder. Nothing uses the network, except the
package index in the rows that build environments."""


@dataclass(frozen=True)
class Page:
    """`rows` in the order of the page; a row that could not be measured at all is a text in `failures`."""

    when: datetime
    machine: Machine
    versions: Mapping[str, str]
    rows: Sequence[Row]
    failures: Mapping[str, str]


def render(page: Page) -> str:
    parts = [_INTRODUCTION, _about(page), _CONDITIONS, _summary(page)]
    parts += [row_text(row) for row in page.rows]
    return "\n\n".join(parts) + "\n"


def merged(old: str, new: str, titles: Sequence[str]) -> str:
    """The page `old` with the rows that `new` has in their place. `titles` is the order of the page."""
    head, *before = _sections(old)
    parts = {_title(part): part for part in (*before, *_sections(new)[1:]) if _title(part) != _SUMMARY}
    fresh = {_title(part) for part in _sections(new)}
    table = _summary_of(old)
    lines = [line for line in table[2:] if _row_of(line, titles) not in fresh] + _summary_of(new)[2:]
    lines.sort(key=lambda line: titles.index(_row_of(line, titles)))
    summary = "\n".join([f"## {_SUMMARY}\n", *table[:2], *lines])
    return "\n\n".join([head, summary, *(parts[title] for title in titles if title in parts)]) + "\n"


def row_text(row: Row) -> str:
    parts = [f"## {row.title}", row.how]
    for table in row.tables:
        parts.append("\n\n".join(part for part in (_bold(table.title), table_text(table), table.note) if part))
    shown = f"Measure it with `{COMMAND} --only {row.name}`, profile it with `{COMMAND} --profile {row.name}`."
    parts.append(f"Measured {row.moment}. {shown}" if row.moment else shown)
    return "\n\n".join(parts)


def table_text(table: Table) -> str:
    repeated = any(len(line.figures.values) > 1 for line in (table.ours, *table.others))
    head = ["", f"median, {table.unit}" if repeated else table.unit]
    head += ["least", "spread"] if repeated else []
    rows = [[*_cells(table, line, repeated), *_judged(table, line)] for line in (table.ours, *table.others)]
    return markdown_table([*head, "ratio", "bar", ""], rows)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], whole: bool = False) -> str:
    """The first column to the left, figures to the right; empty columns are left out unless the table is `whole`."""
    kept = [number for number in range(len(head)) if whole or number == 0 or any(row[number] for row in rows)]
    lines = [[head[number] for number in kept], ["---" if number == 0 else "---:" for number in kept]]
    lines += [[row[number].replace("|", "\\|") for number in kept] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number_text(value: float) -> str:
    """Three significant digits, and no more than needed."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.2g}"


def _about(page: Page) -> str:
    machine = page.machine
    facts = [
        ["date", page.when.strftime("%Y-%m-%d")],
        ["processor", f"{machine.processor}, {machine.cores} cores"],
        ["memory", f"{machine.memory / 1e9:.0f} GB"],
        ["kernel", machine.kernel],
        ["Python", machine.python],
        ["load before the start", f"{machine.load:.1f}"],
        ["versions", ", ".join(f"{name} {version}" for name, version in page.versions.items())],
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts)])


def _summary(page: Page) -> str:
    rows = []
    for row in page.rows:
        for table in row.tables:
            for line in (table.ours, *table.others):
                if line.bar is not None:
                    rows.append(_summary_row(row, table, line))
    for title, problem in page.failures.items():
        rows.append([title, "", problem, "", "", Verdict.UNKNOWN.value])
    return f"## {_SUMMARY}\n\n" + markdown_table(["", "Holdfast", "against", "ratio", "bar", ""], rows, whole=True)


def _summary_row(row: Row, table: Table, line: Line) -> list[str]:
    title = f"{row.title}: {table.title}" if table.title else row.title
    against = "" if line is table.ours else f"{line.name}: {_value(table, line)}"
    return [title, _value(table, table.ours), against, *_judged(table, line)]


def _value(table: Table, line: Line) -> str:
    if not line.figures.values:
        return line.figures.problem
    return f"{number_text(line.figures.median * table.scale)} {table.unit}"


def _cells(table: Table, line: Line, repeated: bool) -> list[str]:
    figures = line.figures
    if not figures.values:
        return [line.name, figures.problem, *(["", ""] if repeated else [])]
    cells = [line.name, number_text(figures.median * table.scale)]
    return cells + ([number_text(figures.least * table.scale), f"± {figures.spread:.0%}"] if repeated else [])


def _judged(table: Table, line: Line) -> list[str]:
    if line is table.ours:
        return ["", bar_text(line.bar, table.unit), verdict(table, line).value]
    found = ratio(table, line)
    return ["" if found is None else number_text(found), bar_text(line.bar), verdict(table, line).value]


def bar_text(bar: Bar | None, unit: str = "times") -> str:
    if bar is None:
        return ""
    return f"at {'most' if bar.at_most else 'least'} {bar.limit:g} {unit}"


def _sections(text: str) -> list[str]:
    return [part.strip("\n") for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)]


def _title(section: str) -> str:
    return section.partition("\n")[0].removeprefix("## ")


def _summary_of(text: str) -> list[str]:
    """The lines of the table: its head, the line below it, then one for each bar."""
    (section,) = (part for part in _sections(text) if _title(part) == _SUMMARY)
    return [line for line in section.splitlines() if line.startswith("|")]


def _row_of(line: str, titles: Sequence[str]) -> str:
    """Which row a line of the summary is of. A title may be the beginning of another one."""
    found = [title for title in titles if line.startswith((f"| {title} |", f"| {title}: "))]
    return max(found, key=len)


def _bold(title: str) -> str:
    return f"**{title}**" if title else ""
