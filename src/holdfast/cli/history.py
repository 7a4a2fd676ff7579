"""`history list`, and `rebuild` of the index that it reads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import current_context, current_project
from holdfast.cli.find_run import ask_hosts
from holdfast.cli.options import (
    target_option,
)
from holdfast.cli.output_format import CliCommand, Output, output_options
from holdfast.cli.tables import fitting, left_out
from holdfast.history.index import EVERY, Filter, Index
from holdfast.history.queries import metric_conditions
from holdfast.model import Run, Status
from holdfast.presenting.run_words import COLUMNS, host_state, table
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.workbench.reach.contacts import Silence, silences

TABLE_ROWS = 50
"""Rows of a table without --limit: more do not fit a screen. JSON has all, as `az` had."""


@click.command("list", cls=CliCommand)
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
@target_option("Only runs on this compute target.")
@click.option("--no-refresh", "as_known", is_flag=True, help="Show what is known here; ask no machine.")
@output_options
def list_command(
    limit: int | None, status: str | None, script: str | None, target: str | None, as_known: bool, output: Output
) -> None:
    """List the runs of this project, newest first, after asking the machines of those that have not ended.

    A machine that cannot be reached is named, and its runs are shown as they were last known.
    """
    project = current_project()
    as_table = output.chosen_format() == "table" and output.query is None
    only = Filter(os.path.normpath(script) if script else None, target, Status(status) if status else None)
    index = Index(project.state_directory)
    if not as_table:
        found = _documents(index, limit, only, output.query, None if as_known else project)
        output.show(with_host_states(project, found), COLUMNS)
        return
    listing = index.look(limit or TABLE_ROWS, only)
    if listing.has_unfinished and not as_known:
        ask_hosts(project)
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
    going_on = [run for run in runs if run.ending is None and run.submission.target_type != "local"]
    found = table(runs, _silences(project, [run.run_id for run in going_on]), time.time())
    if not terminal.is_terminal(sys.stdout):
        output.show(found.rows, found.columns)
        return
    columns = fitting(found.columns, found.by_worth(), found.rows, terminal.width())
    output.show(found.rows, columns)
    if missing := [*(each.title for each in found.columns if each not in columns), *found.others]:
        terminal.notice(left_out(missing, terminal.width()))


def _silences(project: Project, run_ids: list[str]) -> Mapping[str, Silence]:
    return silences(project, run_ids, current_context()) if run_ids else {}


def with_host_states(project: Project, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds `host_state` to runs that go on, as far as is known, and whose machine could not be asked."""
    going_on = [each for each in documents if each["reason"] is None and each["target_type"] != "local"]
    found = _silences(project, [each["run_id"] for each in going_on])
    for each in going_on:
        if each["run_id"] in found:
            each["host_state"] = host_state(found[each["run_id"]])
    return documents


def _documents(
    index: Index, limit: int | None, only: Filter, query: str | None, to_refresh: Project | None
) -> list[dict[str, Any]]:
    """The runs as dicts; if a query asks for metrics, only those that it may select."""
    metrics = metric_conditions(query) if query and limit is None else ()
    found = index.documents(limit, only, metrics)
    if found.has_unfinished and to_refresh is not None:
        ask_hosts(to_refresh)
        found = index.documents(limit, only, metrics)
    _say_what_is_unreadable(found.unreadable)
    return list(found.documents)


def _say_what_is_unreadable(names: tuple[str, ...]) -> None:
    for name in names:
        terminal.warning(f"the folder of run `{name}` cannot be read.")
        terminal.hint(f"Why: holdfast history info -r {pasted(name)}")


@click.command("rebuild", cls=CliCommand)
def rebuild_command() -> None:
    """Make the index of the runs anew from their folders."""
    state = current_project().state_directory
    count = Index(state).rebuild() if state.is_dir() else 0
    terminal.data(f"{count} {'run' if count == 1 else 'runs'} in the index.")
