"""`holdfast history`: list, last, info, compare, download, promote, rebuild, all from copies at home."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import terminal
from holdfast.cli.output import Column, Group, Output, output_options
from holdfast.errors import HoldfastError, UsageError

if TYPE_CHECKING:
    from holdfast.project.folder import Project

group = Group("history", help="List, inspect, compare and download runs.")

TABLE_ROWS = 50
"""A table without --limit shows this many: more does not fit a screen. JSON has all, as `az` had."""


def _complete_run(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.history.folder import RunFolders

    try:
        ids = RunFolders(_project().state_directory).all_ids()
    except HoldfastError:
        return []  # completing a word is no place to complain
    return [each for each in (*ids[::-1], "last") if each.startswith(incomplete)]


_RUN = click.option(
    "-r",
    "--run",
    "run",
    required=True,
    metavar="RUN",
    shell_complete=_complete_run,
    help="Run id, the beginning or the end of one, or `last`.",
)


@group.command("list")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Only the newest N. [default: {TABLE_ROWS} in a table, else all]",
)
@output_options
def list_command(limit: int | None, output: Output) -> None:
    """List the runs of this project, newest first."""
    from holdfast.cli.run_table import COLUMNS, table
    from holdfast.history.index import Index
    from holdfast.history.queries import run_as_dict

    project = _project()
    _refresh(project)
    as_table = output.chosen_format() == "table" and output.query is None
    listing = Index(project.state_directory).look(limit or (TABLE_ROWS if as_table else None))
    if not as_table:
        output.show([run_as_dict(run) for run in listing.runs], COLUMNS)
    elif listing.runs:
        width = terminal.width() if terminal.is_terminal(sys.stdout) else None
        output.show(*table(listing.runs, width))
    else:
        terminal.notice("Nothing has been run here yet.")
        terminal.hint("holdfast experiment submit SCRIPT")
    more = listing.total - len(listing.runs)
    if more > 0:
        terminal.notice(f"{more} older {'run is' if more == 1 else 'runs are'} not shown: --limit {listing.total}")
    for name in listing.unreadable:
        terminal.warning(f"the folder of run `{terminal.one_line(name)}` cannot be read.")
        terminal.hint(f"Why: holdfast history info -r {terminal.one_line(name)}")


@group.command("last")
@output_options
def last_command(output: Output) -> None:
    """Show the newest run: the same as `info -r last`."""
    _show_run("last", output)


@group.command("info")
@_RUN
@click.option("-a", "--artifact", metavar="PATH", help="Print the content of this file of the run instead.")
@output_options
def info_command(run: str, artifact: str | None, output: Output) -> None:
    """Show everything that is known about a run."""
    if artifact is None:
        _show_run(run, output)
        return
    from holdfast.workbench.artifacts import find_artifact

    project = _project()
    _refresh(project)
    found = find_artifact(project, _resolve(project, run), artifact)
    sys.stdout.flush()
    with found.file.open("rb") as source:
        while data := source.read(1 << 20):
            sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@group.command("compare")
@click.argument("runs", nargs=-1, metavar="[A B]", shell_complete=_complete_run)
@click.option("-r", "--run", "named", multiple=True, metavar="RUN", help="One of the two runs; give it twice.")
@click.option("--code", "whole_code", is_flag=True, help="Show the whole difference of the code, however long.")
@output_options
def compare_command(runs: tuple[str, ...], named: tuple[str, ...], whole_code: bool, output: Output) -> None:
    """Show what differs between two runs: code, arguments, configuration, environment, metrics."""
    from holdfast.cli.comparison_page import as_dict, draw
    from holdfast.workbench.comparison import compare

    given = (*runs, *named)
    if len(given) != 2:
        raise UsageError(f"Two runs are needed, and {len(given)} given.", "holdfast history compare RUN RUN")
    project = _project()
    _refresh(project)
    first, second = (_resolve(project, each) for each in given)
    comparison = compare(project, first, second)
    if output.chosen_format() == "table" and output.query is None:
        draw(comparison, whole_code, sys.stdout)
    else:
        output.show(as_dict(comparison))


@group.command("download")
@_RUN
@click.option(
    "-d",
    "--directory",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where to put the files.",
)
@click.option(
    "--artifact",
    metavar="PATH",
    help="Only this file, e.g. outputs/model.pkl. [default: outputs and uploads]",
)
@click.option("--overwrite", is_flag=True, help="Replace files that are there.")
def download_command(run: str, directory: Path, artifact: str | None, overwrite: bool) -> None:
    """Copy the files of a run to a folder. Each keeps its path: DIR/outputs/model.pkl."""
    from holdfast.cli.events import size
    from holdfast.workbench.artifacts import Copied, Download, download

    project = _project()
    _refresh(project)
    count = total = 0
    for event in download(project, Download(_resolve(project, run), directory, artifact, overwrite)):
        if isinstance(event, Copied):
            click.echo(terminal.one_line(str(event.destination)))
            count, total = count + 1, total + event.size
        else:
            terminal.warning(f"`{terminal.one_line(event.path)}` is a link that leads out of the run: left out.")
    terminal.notice(f"{count} {'file' if count == 1 else 'files'}, {size(total)}.")


@group.command("promote")
@_RUN
@click.option("-ap", "--artifact-path", required=True, metavar="PATH", help="File of the run: outputs/model.pkl.")
@click.option("-n", "--name", required=True, metavar="NAME", help="Name of the asset: assets/NAME.link is written.")
def promote_command(run: str, artifact_path: str, name: str) -> None:
    """Give a file of a run a name that is committed with the code."""
    from holdfast.workbench.promotion import promote

    project = _project()
    done = promote(project, _resolve(project, run), artifact_path, name)
    click.echo(done.file.relative_to(project.root))
    if done.replaced is not None:
        terminal.notice(f"It led to `{done.replaced.artifact}` of run {done.replaced.run_id} before.")
    terminal.hint(f"Fetch it: holdfast asset download -l {done.file.relative_to(project.root)} -d DIR")


@group.command("rebuild")
def rebuild_command() -> None:
    """Make the index of the runs anew from their folders."""
    from holdfast.history.index import Index

    state = _project().state_directory
    count = Index(state).rebuild() if state.is_dir() else 0
    click.echo(f"{count} {'run' if count == 1 else 'runs'} in the index.")


def _show_run(run: str, output: Output) -> None:
    from holdfast.cli.run_page import as_dict, draw
    from holdfast.workbench.inspection import inspect

    project = _project()
    _refresh(project)
    inspection = inspect(project, _resolve(project, run))
    if output.chosen_format() == "table" and output.query is None:
        draw(inspection, sys.stdout)
    else:
        output.show(as_dict(inspection), _INFO_COLUMNS)


_INFO_COLUMNS = [
    Column("run_id", "RunId"),
    Column("status", "Status"),
    Column("target", "Target"),
    Column("duration", "Duration"),
]


def _project() -> Project:
    from holdfast.project.folder import find_project

    return find_project(Path.cwd())


def _resolve(project: Project, run: str) -> str:
    from holdfast.history.folder import RunFolders

    return RunFolders(project.state_directory).resolve(run)


def _refresh(project: Project) -> None:
    """Ask the hosts about unfinished runs. What is at home can be read whether they answer or not."""
    from holdfast.history.index import Index

    if not Index(project.state_directory).unfinished():
        return  # the usual case: nothing to ask, so nothing of the hosts is imported
    from holdfast.cli.events import drain
    from holdfast.workbench.refresh import refresh
    from holdfast.workbench.surroundings import surroundings

    try:
        drain(refresh(project, surroundings()))
    except (HoldfastError, OSError) as error:
        text: Any = error.message if isinstance(error, HoldfastError) else error
        terminal.warning(f"unfinished runs are shown as they were last known: {text}")
