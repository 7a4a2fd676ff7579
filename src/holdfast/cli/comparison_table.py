"""Two runs beside each other on a terminal: sections as tables, and the difference of the code."""

from __future__ import annotations

from typing import TextIO

from holdfast.cli import tables, terminal
from holdfast.presenting.comparison_page import changed_files, sameness, sections
from holdfast.presenting.lines import one_line
from holdfast.workbench.records.comparison import CodeDifference, RunComparison

DIFF_LINES = 60
FILES_SHOWN = 20
LINE_LENGTH = 200
"""Of the code's difference, without --code."""


def draw_comparison(comparison: RunComparison, whole_code: bool, stream: TextIO) -> None:
    for section in sections(comparison):
        tables.draw(section.rows, section.columns, stream)
        stream.write("\n")
    stream.writelines(f"{line}\n" for line in sameness(comparison))
    _draw_code(comparison.code, whole_code, stream)


def _draw_code(code: CodeDifference, whole: bool, stream: TextIO) -> None:
    if code == CodeDifference():
        return
    stream.write(terminal.style("Code", "bold", stream) + "\n")
    if code.problem:
        stream.write(f"It cannot be compared: {one_line(code.problem)}\n\n")
        return
    names = [f"{word:8} {one_line(path)}" for word, path in changed_files(code)]
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
    return "\t".join(one_line(part) for part in line.split("\t"))


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
