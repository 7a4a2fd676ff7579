"""`holdfast history`: list, last, info, compare, download, promote, rebuild, all from copies at home; import brings
them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project
from holdfast.cli.options import (
    artifact_names,
    download_options,
    run_names,
    run_option,
    target_names,
    target_of_run,
)
from holdfast.cli.output import Column, Group, Output, output_options
from holdfast.errors import HoldfastError, StorageError, UsageError
from holdfast.model import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.history.index import Filter, Index
    from holdfast.model import Run
    from holdfast.project.folder import Project
    from holdfast.workbench.records.silence import Silence

group = Group("history", help="List, inspect, compare and download runs.")

TABLE_ROWS = 50
"""A table without --limit shows this many: more does not fit a screen. JSON has all, as `az` had."""


@group.command("list")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Only the newest N. [default: {TABLE_ROWS} in a table, else all]",
)
@click.option(
    "--status",
    type=click.Choice([each.value for each in Status], case_sensitive=False),
    metavar="STATUS",
    help=f"Only runs that are so: {', '.join(each.value for each in Status)}.",
)
@click.option("--script", metavar="SCRIPT", help="Only runs of this script, by its path in the project.")
@click.option("-t", "--target", metavar="NAME", shell_complete=target_names, help="Only runs on this compute target.")
@click.option("--no-refresh", "as_known", is_flag=True, help="Show what is known here; ask no machine.")
@output_options
def list_command(
    limit: int | None, status: str | None, script: str | None, target: str | None, as_known: bool, output: Output
) -> None:
    """List the runs of this project, newest first, after asking the machines of those that have not ended.

    A machine that cannot be reached is named, and its runs are shown as they were last known.
    """
    from holdfast.cli.run_table import COLUMNS
    from holdfast.history.index import EVERY, Filter, Index

    project = current_project()
    as_table = output.chosen_format() == "table" and output.query is None
    only = Filter(os.path.normpath(script) if script else None, target, Status(status) if status else None)
    index = Index(project.state_directory)
    if not as_table:
        found = _documents(index, limit, only, output.query, None if as_known else project)
        output.show(_with_host_states(project, found), COLUMNS)
        return
    listing = index.look(limit or TABLE_ROWS, only)
    if listing.has_unfinished and not as_known:
        _refresh(project)
        listing = index.look(limit or TABLE_ROWS, only)
    if listing.runs:
        _show_table(project, listing.runs, output)
    elif only == EVERY:
        terminal.notice("Nothing has been run here yet.")
        terminal.hint("holdfast experiment submit SCRIPT")
    else:
        terminal.notice("No run is like that.")
        terminal.hint("All runs: holdfast history list")
    more = 0 if limit else listing.total - len(listing.runs)
    if more > 0:
        terminal.notice(f"{more} older {'run is' if more == 1 else 'runs are'} not shown: --limit {listing.total}")
    _say_what_is_unreadable(listing.unreadable)


def _show_table(project: Project, runs: Sequence[Run], output: Output) -> None:
    from holdfast.cli.run_table import in_brief, table

    width = terminal.width() if terminal.is_terminal(sys.stdout) else None
    going_on = [run for run in runs if run.ending is None and run.submission.target_type != "local"]
    rows, columns, left_out = table(runs, width, _silences(project, [run.run_id for run in going_on]))
    output.show(rows, columns)
    if left_out:
        terminal.notice(in_brief(left_out, terminal.width()))


def _silences(project: Project, run_ids: list[str]) -> Mapping[str, Silence]:
    if not run_ids:
        return {}
    from holdfast.cli.here import surroundings
    from holdfast.workbench.records.silence import silences

    return silences(project, run_ids, surroundings())


def _with_host_states(project: Project, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say of a run that goes on, as far as is known, that its machine could not be asked."""
    from holdfast.cli.run_table import host_state

    going_on = [each for each in documents if each["reason"] is None and each["target_type"] != "local"]
    found = _silences(project, [each["run_id"] for each in going_on])
    for each in going_on:
        if each["run_id"] in found:
            each["host_state"] = host_state(found[each["run_id"]])
    return documents


def _documents(
    index: Index, limit: int | None, only: Filter, query: str | None, to_refresh: Project | None
) -> list[dict[str, Any]]:
    """The runs as dicts; where a query looks for metrics, only those that it can let through."""
    from holdfast.history.narrowing import metric_conditions
    from holdfast.history.queries import RESERVED

    metrics = metric_conditions(query, RESERVED) if query and limit is None else ()
    found = index.documents(limit, only, metrics)
    if found.has_unfinished and to_refresh is not None:
        _refresh(to_refresh)
        found = index.documents(limit, only, metrics)
    _say_what_is_unreadable(found.unreadable)
    return list(found.documents)


def _say_what_is_unreadable(names: tuple[str, ...]) -> None:
    for name in names:
        terminal.warning(f"the folder of run `{terminal.one_line(name)}` cannot be read.")
        terminal.hint(f"Why: holdfast history info -r {terminal.one_line(name)}")


@group.command("last")
@output_options
def last_command(output: Output) -> None:
    """Show the newest run: the same as `info -r last`."""
    _show_run("last", output)


@group.command("info")
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
    from holdfast.workbench.records.artifacts import find_artifact

    project = current_project()
    (run_id,) = _up_to_date(project, run, target=target)
    found = find_artifact(project, run_id, artifact)
    sys.stdout.flush()
    with found.file.open("rb") as source:
        while data := source.read(1 << 20):
            sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@group.command("compare")
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
    from holdfast.cli.comparison_page import as_dict, draw
    from holdfast.workbench.records.comparison import compare

    given = (*runs, *named)
    if len(given) != 2:
        raise UsageError(f"Two runs are needed, and {len(given)} given.", "holdfast history compare RUN RUN")
    project = current_project()
    comparison = compare(project, *_up_to_date(project, *given))
    if output.chosen_format() == "table" and output.query is None:
        draw(comparison, whole_code, sys.stdout)
    else:
        output.show(as_dict(comparison))


@group.command("download")
@run_option()
@target_of_run()
@download_options
@click.option(
    "--artifact",
    "wanted",
    multiple=True,
    metavar="PATH",
    shell_complete=artifact_names,
    help='Only this file, folder (outputs/plots/) or glob ("*.pkl"); may be repeated. [default: outputs and uploads]',
)
def download_command(run: str, target: str | None, directory: Path, overwrite: bool, wanted: tuple[str, ...]) -> None:
    """Copy the files of a run to a folder. Each keeps its path: DIR/outputs/model.pkl."""
    from holdfast.cli.here import surroundings
    from holdfast.cli.shipping import tell_if_shipped
    from holdfast.project.sizes import format_size
    from holdfast.workbench.records.artifacts import Copied, Download, download

    around = surroundings()
    project = current_project(around)
    (run_id,) = _up_to_date(project, run, target=target, whole=True)
    count = total = 0
    if not wanted:
        from holdfast.cli.events import Screen
        from holdfast.history.folder import RunFolders
        from holdfast.workbench.following.fetching import bring_outputs_home

        screen = Screen(None, frame=False)
        folders = RunFolders(project.state_directory)
        were_left = folders.outputs_are_left(run_id)
        for news in bring_outputs_home(project, run_id, around):
            screen.show(news)
        screen.finish_line()
        if were_left:
            terminal.notice(f"The outputs are at home now: .holdfast/runs/{run_id}/outputs; this is a copy of them:")
    try:
        for event in download(project, Download(run_id, directory, wanted, overwrite), around):
            if isinstance(event, Copied):
                click.echo(terminal.one_line(str(event.destination)))
                count, total = count + 1, total + event.size
            else:
                terminal.warning(f"`{terminal.one_line(event.path)}` is a link that leads out of the run: left out.")
    except StorageError:
        terminal.notice(f"{count} {'file' if count == 1 else 'files'}, {format_size(total)}; not all:")
        raise
    terminal.notice(f"{count} {'file' if count == 1 else 'files'}, {format_size(total)}.")
    if count:
        tell_if_shipped(project, directory, around)


@group.command("promote")
@run_option()
@click.option(
    "-ap",
    "--artifact-path",
    required=True,
    metavar="PATH",
    shell_complete=artifact_names,
    help="File of the run: outputs/model.pkl.",
)
@click.option("-n", "--name", required=True, metavar="NAME", help="Name of the asset: assets/NAME.link is written.")
def promote_command(run: str, artifact_path: str, name: str) -> None:
    """Give a file of a run a name that is committed with the code."""
    from holdfast.history.folder import RunFolders
    from holdfast.workbench.records.promotion import promote

    project = current_project()
    done = promote(project, RunFolders(project.state_directory).resolve(run), artifact_path, name)
    click.echo(done.file.relative_to(project.root))
    if done.replaced is not None:
        terminal.notice(f"It led to `{done.replaced.artifact}` of run {done.replaced.run_id} before.")
    terminal.hint(f"Fetch it: holdfast asset download -l {done.file.relative_to(project.root)} -d DIR")


@group.command("import")
@click.option(
    "-t", "--target", required=True, metavar="NAME", shell_complete=target_names, help="Compute target to ask."
)
@click.option("--project", "wanted", metavar="PROJECT", help="Of this project, by name or id. [default: this one]")
@click.option("--all", "everything", is_flag=True, help="Of every project that has runs there.")
def import_command(target: str, wanted: str | None, everything: bool) -> None:
    """Bring the runs that were submitted from other machines: their records, code, logs, metrics and small outputs.

    A run that is here already is left alone. Large outputs stay there until `history download` or `logs -f`.
    """
    from holdfast.cli.events import drain
    from holdfast.cli.here import surroundings
    from holdfast.history.folder import RunFolders
    from holdfast.workbench.records.importing import import_runs

    if wanted is not None and everything:
        raise UsageError("--all takes every project, and --project one.", "Leave out one of them.")
    around = surroundings()
    project = current_project(around)
    folders = RunFolders(project.state_directory)
    before = folders.names()
    drain(import_runs(project, target, wanted, everything, around))
    count = len(folders.names() - before)
    terminal.notice(f"{count} {'run' if count == 1 else 'runs'} imported from {target}.")


@group.command("rebuild")
def rebuild_command() -> None:
    """Make the index of the runs anew from their folders."""
    from holdfast.history.index import Index

    state = current_project().state_directory
    count = Index(state).rebuild() if state.is_dir() else 0
    click.echo(f"{count} {'run' if count == 1 else 'runs'} in the index.")


def _show_run(run: str, output: Output, target: str | None = None) -> None:
    from holdfast.cli.run_page import as_dict, draw
    from holdfast.workbench.records.inspection import inspect

    project = current_project()
    (run_id,) = _up_to_date(project, run, target=target)
    is_drawn = output.chosen_format() == "table" and output.query is None
    inspection = inspect(project, run_id, is_drawn)
    if is_drawn:
        draw(inspection, sys.stdout)
    else:
        (document,) = _with_host_states(project, [as_dict(inspection)])
        output.show(document, _INFO_COLUMNS)


_INFO_COLUMNS = [
    Column("run_id", "RunId"),
    Column("status", "Status"),
    Column("target", "Target"),
    Column("duration", "Duration"),
]


def _up_to_date(project: Project, *runs: str, target: str | None = None, whole: bool = False) -> list[str]:
    """The ids of the runs that are meant. If one is not at home yet, its host is asked first; `whole`: outputs come
    home whatever their size."""
    from holdfast.cli.finding import find_id
    from holdfast.cli.here import surroundings
    from holdfast.history.folder import RunFolders

    around = surroundings()
    found = [find_id(project, each, target, around) for each in runs]
    folders = RunFolders(project.state_directory)
    away = frozenset(each for each in found if not folders.is_collected(each))
    if away:
        _refresh(current_project(around), away, away if whole else frozenset())
    return found


def _refresh(project: Project, only: frozenset[str] | None = None, whole: frozenset[str] = frozenset()) -> None:
    """Ask the hosts about unfinished runs. What is at home can be read whether they answer or not."""
    from holdfast.cli.events import drain
    from holdfast.cli.here import surroundings
    from holdfast.workbench.records.refresh import Looking, refresh

    try:
        drain(refresh(project, surroundings(), Looking(only, whole)))
    except (HoldfastError, OSError) as error:
        text: Any = error.message if isinstance(error, HoldfastError) else error
        terminal.warning(f"unfinished runs are shown as they were last known: {text}")
