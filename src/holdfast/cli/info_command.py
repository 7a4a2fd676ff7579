"""`history info`, `last` and `compare`: one run on a page, and two beside each other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO

import click

from holdfast.cli import tables, terminal
from holdfast.cli.command_context import current_project
from holdfast.cli.find_run import up_to_date
from holdfast.cli.gpu_plot import gpus_over_time
from holdfast.cli.history import with_host_states
from holdfast.cli.options import (
    artifact_names,
    run_names,
    run_option,
    target_of_run,
)
from holdfast.cli.output_format import CliCommand, Column, Output, output_options
from holdfast.cli.tables import draw_page
from holdfast.cli.terminal import Styled
from holdfast.errors import UsageError
from holdfast.presenting import run_page
from holdfast.presenting.run_page import changed_files, sameness, sections
from holdfast.workbench.records.artifacts import find_artifact
from holdfast.workbench.records.inspection import CodeDifference, RunComparison, compare, inspect

DIFF_LINES = 60
FILES_SHOWN = 20
LINE_LENGTH = 200
"""Limits of the code's difference without --code."""


@click.command("last", cls=CliCommand)
@output_options
def last_command(output: Output) -> None:
    """Show the newest run: the same as `info -r last`."""
    _show_run("last", output)


@click.command("info", cls=CliCommand)
@run_option(required=False)
@target_of_run()
@click.option(
    "-a",
    "--artifact",
    metavar="PATH",
    shell_complete=artifact_names,
    help="Print the content of this file of the run instead.",
)
@output_options
def info_command(run: str, target: str | None, artifact: str | None, output: Output) -> None:
    """Show everything that is known about a run."""
    if artifact is None:
        _show_run(run, output, target)
        return

    project = current_project()
    (run_id,) = up_to_date(project, run, target=target)
    found = find_artifact(project, run_id, artifact)
    sys.stdout.flush()
    with found.file.open("rb") as source:
        while data := source.read(1 << 20):
            terminal.pass_on(sys.stdout, data)
    sys.stdout.buffer.flush()


@click.command("compare", cls=CliCommand)
@click.argument("runs", nargs=-1, metavar="[A B]", shell_complete=run_names)
@click.option(
    "-r",
    "--run",
    "named",
    multiple=True,
    metavar="RUN",
    shell_complete=run_names,
    help="One of the two runs; give it twice.",
)
@click.option("--code", "whole_code", is_flag=True, help="Show the whole difference of the code, however long.")
@output_options
def compare_command(runs: tuple[str, ...], named: tuple[str, ...], whole_code: bool, output: Output) -> None:
    """Show what differs between two runs: code, arguments, configuration, environment, metrics."""
    given = (*runs, *named)
    if len(given) != 2:
        raise UsageError(f"Two runs are needed, and {len(given)} given.", "holdfast history compare RUN RUN")
    project = current_project()
    comparison = compare(project, *up_to_date(project, *given))
    if output.chosen_format() == "table" and output.query is None:
        draw_comparison(comparison, whole_code, sys.stdout)
    else:
        output.show(run_page.compared_as_dict(comparison))


def _show_run(run: str, output: Output, target: str | None = None) -> None:
    project = current_project()
    (run_id,) = up_to_date(project, run, target=target)
    is_drawn = output.chosen_format() == "table" and output.query is None
    inspection = inspect(project, run_id, is_drawn)
    if is_drawn:
        plot = gpus_over_time(inspection.run, inspection.gpus, sys.stdout)
        draw_page(run_page.rows(inspection, plot), sys.stdout)
    else:
        (document,) = with_host_states(project, [run_page.as_dict(inspection)])
        output.show(document, _INFO_COLUMNS)


_INFO_COLUMNS = [
    Column("run_id", "RunId"),
    Column("status", "Status"),
    Column("target", "Target"),
    Column("duration", "Duration"),
]


def draw_comparison(comparison: RunComparison, whole_code: bool, stream: TextIO) -> None:
    for section in sections(comparison):
        tables.draw(section.rows, section.columns, stream)
        terminal.write(stream)
    for line in sameness(comparison):
        terminal.write(stream, line)
    _draw_code(comparison.code, whole_code, stream)


def _draw_code(code: CodeDifference, whole: bool, stream: TextIO) -> None:
    if code == CodeDifference():
        return
    for line in _code_lines(code, whole):
        terminal.write(stream, line)


def _code_lines(code: CodeDifference, whole: bool) -> Iterator[str | Styled]:
    yield Styled("Code", "bold")
    if code.problem:
        yield f"It cannot be compared: {code.problem}"
        yield ""
        return
    names = [f"{word:8} {path}" for word, path in changed_files(code)]
    shown = names if whole else names[:FILES_SHOWN]
    yield from shown
    if len(names) > len(shown):
        yield f"… {len(names) - len(shown)} more files: --code"
    yield ""
    diff = code.diff.splitlines()
    yield from map(_painted, diff if whole else [_cut(line) for line in diff[:DIFF_LINES]])
    if not whole and len(diff) > DIFF_LINES:
        yield f"… {len(diff) - DIFF_LINES} more lines: --code"
    yield ""


def _cut(line: str) -> str:
    more = len(line) - LINE_LENGTH
    return line if more <= 0 else f"{line[:LINE_LENGTH]}… {more} more characters: --code"


def _painted(line: str) -> Styled:
    """Colour only repeats what the first character says."""
    if line.startswith(("+++", "---", "@@")):
        return Styled(line, "bold", keeps_tabs=True)
    if line.startswith(("+", "-")):
        return Styled(line, "good" if line[0] == "+" else "error", keeps_tabs=True)
    return Styled(line, "", keeps_tabs=True)
