"""`holdfast data`: list, remove."""

from __future__ import annotations

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import any_project, current_context
from holdfast.cli.options import environment_target
from holdfast.cli.output_format import CliCommand, Output, output_options
from holdfast.cli.screen import working
from holdfast.errors import ExitCode, StateError, UsageError
from holdfast.hosts.host import Host
from holdfast.hosts.replies import KeptData
from holdfast.presenting.lines import Column, clock_time
from holdfast.project.quantities import format_size
from holdfast.workbench.machines import data_inventory
from holdfast.workbench.reach.named_machines import host_of_target

_SHOWN = 12
"""Characters of a digest: enough to name it."""


@click.command("list", cls=CliCommand)
@environment_target
@output_options
def list_command(target: str | None, address: str | None, output: Output) -> None:
    """List the data that a machine keeps for runs, the one that was used last first.

    It was sent there by `Data:` or `--data`, once for all runs. Data that lies on a machine anyway is not listed.
    """
    host = _host(target, address)
    with working("looking at the data …"):
        found = data_inventory.list_data(host)
    if not found and output.query is None and output.chosen_format() == "table":
        terminal.notice(f"No data is kept on {host.name}.")
        terminal.hint("To send some: holdfast submit --data SOURCE:TARGET …")
        return
    now = current_context().now()
    output.show([_as_dict(each) for each in found], _columns(now))


@click.command("remove", cls=CliCommand)
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--all", "everything", is_flag=True, help="All that no run is using.")
@environment_target
@click.option("-y", "--yes", "sure", is_flag=True, help="Do not ask.")
def remove_command(
    names: tuple[str, ...], everything: bool, target: str | None, address: str | None, sure: bool
) -> int:
    """Remove data from a machine; a run that reads it again sends it again.

    NAME is a folder's name, or the beginning of its digest. What a run is using is never removed.
    """
    if bool(names) == everything:
        raise UsageError("Say which data.", "holdfast data remove NAME, or --all. See: holdfast data list")
    host = _host(target, address)
    with working("looking at the data …"):
        found = data_inventory.find_data(host, names)
    if not found:
        terminal.notice(f"No data is kept on {host.name}.")
        return 0
    if not sure and not _is_sure(found, host):
        return ExitCode.DECLINED
    kept, freed = [], 0
    for event in data_inventory.remove_data(host, found):
        if event.kept and names:
            kept.append(event)
            continue
        freed += event.size
        terminal.notice(f"kept {event.name}: {event.kept}" if event.kept else f"removed {event.name}")
    if freed:
        terminal.notice(f"{format_size(freed)} freed.")
    if kept:
        first, *more = [f"{each.name}: {each.kept}" for each in kept]
        raise StateError(first, "Wait for the run, or cancel it: holdfast status", more)
    return 0


def _is_sure(found: list[KeptData], host: Host) -> bool:
    for each in found:
        terminal.notice(f"  {each.digest[:_SHOWN]}  {format_size(each.size):>8}  {', '.join(each.names)}")
    what = "this data" if len(found) == 1 else f"these {len(found)} data folders"
    return terminal.agreed(f"Remove {what} from {host.name}?", "Removing data needs confirmation.")


def _host(target: str | None, address: str | None) -> Host:
    context = current_context()
    return host_of_target(any_project(context), target, context, address)


def _as_dict(data: KeptData) -> dict[str, object]:
    return {
        "name": ", ".join(data.names),
        "digest": data.digest,
        "files": data.files,
        "size": data.size,
        "last_used": data.used,
        "used_by": list(data.users),
    }


def _columns(now: float) -> list[Column]:
    return [
        Column("name", "Name"),
        Column("digest", "Digest", format=lambda value: str(value)[:_SHOWN]),
        Column("files", "Files", align="right"),
        Column("size", "Size", align="right", format=format_size),
        Column("last_used", "Last use", format=lambda value: clock_time(value, now)),
        Column("used_by", "Used by", format=", ".join),
    ]
