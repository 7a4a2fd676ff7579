"""`holdfast environment`: list, show, remove, shell, check."""

from __future__ import annotations

import sys

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import any_project, current_context
from holdfast.cli.options import environment_ids, environment_target
from holdfast.cli.output_format import CliCommand, Output, output_options
from holdfast.cli.screen import working
from holdfast.cli.tables import draw_page
from holdfast.errors import ExitCode, StateError, UsageError
from holdfast.hosts.host import Host
from holdfast.hosts.replies import ListedEnvironment
from holdfast.presenting.environment_page import (
    columns,
    listed_as_dict,
    rows,
    shown_as_dict,
)
from holdfast.presenting.lines import Column, at_most
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.workbench.environments import inventory
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.named_machines import host_of_target

SUMMARY_SHOWN = 48
SUMMARY_WORTH_SHOWING = 16
OTHER_COLUMNS = 90
"""Characters that the other columns take, at most: a row that is broken over several lines is hard to read."""
WORTH_A_WORD = 50_000_000
"""Bytes that removing does not free, because the package cache has them too, from which on this is said."""


@click.command("list", cls=CliCommand)
@environment_target
@output_options
def list_command(target: str | None, address: str | None, output: Output) -> None:
    """List the environments of a machine, the one that was used last first.

    Files are shared with the package cache: `Own` is what removing the environment frees.
    """
    context = current_context()
    host = _host(target, address, context)
    with working("looking at the environments …"):
        found = inventory.list_environments(host)
    if not found and output.query is None and output.chosen_format() == "table":
        terminal.notice(f"No environment is on {host.name}.")
        terminal.hint("To build one: holdfast experiment prepare -c NAME")
        return
    output.show([listed_as_dict(each) for each in found], _columns(context.now()))


@click.command("show", cls=CliCommand)
@click.argument("name", metavar="ID", shell_complete=environment_ids)
@environment_target
@output_options
def show_command(name: str, target: str | None, address: str | None, output: Output) -> None:
    """Show one environment: its packages, where it is, what it was made from, and who uses it.

    The beginning of an ID is enough.
    """
    context = current_context()
    shown = inventory.show_environment(_host(target, address, context), name)
    if output.query is None and output.chosen_format() == "table":
        draw_page(rows(shown, context.now()), sys.stdout)
    else:
        output.show(shown_as_dict(shown))


@click.command("remove", cls=CliCommand)
@click.argument("names", nargs=-1, metavar="[ID]…", shell_complete=environment_ids)
@click.option("--all", "everything", is_flag=True, help="All that no run is using.")
@environment_target
@click.option("-y", "--yes", "sure", is_flag=True, help="Do not ask before several are removed.")
def remove_command(
    names: tuple[str, ...], everything: bool, target: str | None, address: str | None, sure: bool
) -> int:
    """Remove environments from a machine; a run that needs one again builds it again. Works in any folder.

    The beginning of an ID is enough. What a run or a shell is using is never removed.
    """
    if bool(names) == everything:
        raise UsageError("Say which environment.", "holdfast environment remove ID, or --all. See: environment list")
    host = _host(target, address, current_context())
    with working("looking at the environments …"):
        found = inventory.find_environments(host, names)
    if not found:
        terminal.notice(f"No environment is on {host.name}.")
        return 0
    if (everything or len(found) > 1) and not sure and not _is_sure(found, host):
        return ExitCode.DECLINED
    kept, removed = [], []
    for event in inventory.remove_environments(host, [each.id for each in found]):
        if event.kept and names:
            kept.append(event)
            continue
        if not event.kept:
            removed.append(event)
        text = f"kept {event.name}: {event.kept}" if event.kept else f"removed {event.name}"
        terminal.notice(text)
    if removed:
        terminal.notice(f"{format_size(sum(each.size for each in removed))} freed.")
    if removed and sum(each.size - each.own for each in found) > WORTH_A_WORD:
        terminal.hint(
            "Packages stay in the cache. To make room there: holdfast experiment clean --environments --keep SIZE"
        )
    if kept:
        raise _in_use(kept, target, address)
    return 0


def _in_use(kept: list[events.Removed], target: str | None, address: str | None) -> StateError:
    where = f" -t {pasted(target)}" if target else f" --address {pasted(address)}" if address else ""
    ids = [each.name.removeprefix("environment ") for each in kept]
    shows = [f"  holdfast environment show {pasted(each)}{where}" for each in ids]
    hint = "\n".join(["Wait for the run, or cancel it. Who it is:", *shows])
    first, *more = [each.kept for each in kept]
    return StateError(first, hint, more)


def _host(target: str | None, address: str | None, context: Context) -> Host:
    return host_of_target(any_project(context), target, context, address)


def _columns(now: float) -> list[Column]:
    room = terminal.width() - OTHER_COLUMNS if terminal.is_terminal(sys.stdout) else SUMMARY_SHOWN
    if room < SUMMARY_WORTH_SHOWING:
        return columns(now)
    return [*columns(now), Column("summary", "Asked for", format=lambda value: at_most(str(value), room))]


def _is_sure(found: list[ListedEnvironment], host: Host) -> bool:
    for each in found:
        text = f"  {each.id}  {format_size(each.own):>8}  {each.state:<10}  {at_most(each.summary, SUMMARY_SHOWN)}"
        terminal.notice(text)
    count = "this environment" if len(found) == 1 else f"these {len(found)} environments"
    return terminal.agreed(f"Remove {count} from {host.name}?", "Removing several environments needs confirmation.")
