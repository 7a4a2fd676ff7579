"""`history info`, `last` and `compare`: one run on a page, and two beside each other."""

from __future__ import annotations

import sys

import click

from holdfast.cli.command_context import current_project
from holdfast.cli.comparison_table import draw_comparison
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
from holdfast.errors import UsageError
from holdfast.presenting import comparison_page, run_page
from holdfast.workbench.records.artifacts import find_artifact
from holdfast.workbench.records.comparison import compare
from holdfast.workbench.records.inspection import inspect


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
            sys.stdout.buffer.write(data)
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
        output.show(comparison_page.as_dict(comparison))


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
