"""`holdfast environment`: list, show, remove, shell, check."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import terminal
from holdfast.cli.environment_check import check_command
from holdfast.cli.here import current_project, surroundings
from holdfast.cli.options import environment_ids, target_names
from holdfast.cli.output import Column, Group, Output, output_options
from holdfast.errors import ExitCode, StateError, UsageError
from holdfast.frozen import asdict

if TYPE_CHECKING:
    from holdfast.hosts.host import Host
    from holdfast.workbench import events
    from holdfast.workbench.environments.listing import Listed, Shown
    from holdfast.workbench.surroundings import Surroundings

group = Group("environment", help="List, show, check, enter and remove the environments that runs are given.")
group.add_command(check_command)

PACKAGES_SHOWN = 40
USERS_SHOWN = 5
SUMMARY_SHOWN = 48
SUMMARY_WORTH_SHOWING = 16
OTHER_COLUMNS = 90
"""Characters that the columns before the summary take, at most: a row that is broken over several lines is hard to
read."""
WORTH_A_WORD = 50_000_000
"""Bytes that removing does not free, since the package cache has them too."""

_target_option = click.option(
    "-t",
    "--target",
    metavar="NAME",
    shell_complete=target_names,
    help="Compute target whose machine is meant. [default: this machine]",
)


@group.command("list")
@_target_option
@output_options
def list_command(target: str | None, output: Output) -> None:
    """List the environments of a machine, the one that was used last first.

    Files are shared with the package cache: `Own` is what removing the environment frees.
    """
    from holdfast.cli.progress import working
    from holdfast.workbench.environments.listing import list_environments

    around = surroundings()
    host = _host(target, around)
    with working("looking at the environments …"):
        found = list_environments(host)
    if not found and output.query is None and output.chosen_format() == "table":
        terminal.notice(f"No environment is on {host.name}.")
        terminal.hint("To build one: holdfast experiment prepare -c NAME")
        return
    output.show([_as_dict(each) for each in found], _columns(around))


@group.command("show")
@click.argument("name", metavar="ID", shell_complete=environment_ids)
@_target_option
@output_options
def show_command(name: str, target: str | None, output: Output) -> None:
    """Show one environment: its packages, where it is, what it was made from, and who uses it.

    The beginning of an ID is enough.
    """
    from holdfast.workbench.environments.listing import show_environment

    around = surroundings()
    shown = show_environment(_host(target, around), name)
    if output.query is None and output.chosen_format() == "table":
        from holdfast.cli import pages

        pages.draw(list(_rows(shown, around)), sys.stdout)
    else:
        output.show(
            {
                **_as_dict(shown.listed),
                "path": shown.path,
                "installed": list(shown.packages),
                "lock": shown.lock,
                "runs": [asdict(each) for each in shown.users],
            }
        )


@group.command("remove")
@click.argument("names", nargs=-1, metavar="[ID]…", shell_complete=environment_ids)
@click.option("--all", "everything", is_flag=True, help="All that no run is using.")
@_target_option
@click.option("-y", "--yes", "sure", is_flag=True, help="Do not ask before several are removed.")
def remove_command(names: tuple[str, ...], everything: bool, target: str | None, sure: bool) -> int:
    """Remove environments from a machine; a run that needs one again builds it again.

    The beginning of an ID is enough. What a run or a shell is using is never removed.
    """
    from holdfast.cli.progress import working
    from holdfast.project.sizes import format_size
    from holdfast.workbench.environments.listing import find_environments, remove_environments

    if bool(names) == everything:
        raise UsageError("Say which environment.", "holdfast environment remove ID, or --all. See: environment list")
    host = _host(target, surroundings())
    with working("looking at the environments …"):
        found = find_environments(host, names)
    if not found:
        terminal.notice(f"No environment is on {host.name}.")
        return 0
    if (everything or len(found) > 1) and not sure and not _is_sure(found, host):
        return ExitCode.DECLINED
    kept, removed = [], []
    for event in remove_environments(host, [each.id for each in found]):
        if event.kept and names:
            kept.append(event)
            continue
        if not event.kept:
            removed.append(event)
        text = f"kept {event.name}: {event.kept}" if event.kept else f"removed {event.name}"
        terminal.notice(terminal.one_line(text))
    if removed:
        terminal.notice(f"{format_size(sum(each.size for each in removed))} freed.")
    if removed and sum(each.size - each.own for each in found) > WORTH_A_WORD:
        terminal.hint(
            "Packages stay in the cache. To make room there: holdfast experiment clean --environments --keep SIZE"
        )
    if kept:
        raise _in_use(kept, target)
    return 0


@group.command("shell", context_settings={"allow_interspersed_args": False})
@_target_option
@click.argument("name", metavar="ID", shell_complete=environment_ids)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]…")
def shell_command(target: str | None, name: str, words: tuple[str, ...]) -> int:
    """Open a shell in an environment, or run COMMAND in it: `python`, `pip` and the like are its own.

    The beginning of an ID is enough. The environment cannot be removed meanwhile, and its files are read-only.
    """
    from holdfast.workbench.machines.shells import enter_environment

    if words and words[0] != "--" and words[0].startswith("-"):
        given = terminal.one_line(" ".join(words[:2]) if words[0] in ("-t", "--target") else words[0])
        raise UsageError(
            f"`{given}` stands after the id, where the command is expected.",
            f"Options come first: holdfast environment shell {given} {terminal.one_line(name)}",
        )
    around = surroundings()
    return enter_environment(_host(target, around), name, words[words[:1] == ("--",) :], around)


def _in_use(kept: list[events.Removed], target: str | None) -> StateError:
    where = f" -t {target}" if target else ""
    ids = [terminal.one_line(each.name.removeprefix("environment ")) for each in kept]
    shows = [f"  holdfast environment show {each}{where}" for each in ids]
    hint = "\n".join(["Wait for the run, or cancel it. Who it is:", *shows])
    return StateError("\n".join(terminal.one_line(each.kept) for each in kept), hint)


def _host(target: str | None, around: Surroundings) -> Host:
    from holdfast.workbench.environments.listing import host_of_target

    return host_of_target(current_project(around), target, around)


def _as_dict(listed: Listed) -> dict[str, Any]:
    from holdfast.history.queries import iso_utc

    return {
        "id": listed.id,
        "state": listed.state,
        "python": listed.python,
        "packages": listed.packages,
        "size": listed.size,
        "own_size": listed.own,
        "last_used": listed.used,
        "last_used_utc": iso_utc(listed.used),
        "built_utc": iso_utc(listed.built) if listed.built else None,
        "build_seconds": listed.seconds,
        "summary": listed.summary,
    }


def _columns(around: Surroundings) -> list[Column]:
    from holdfast.cli.clock import clock_time
    from holdfast.project.sizes import format_size
    from holdfast.workbench.environments.listing import short

    columns = [
        Column("id", "Id", format=short),
        Column("python", "Python"),
        Column("packages", "Packages", align="right"),
        Column("size", "Size", align="right", format=format_size),
        Column("own_size", "Own", align="right", format=format_size),
        Column("last_used", "Last use", format=lambda value: clock_time(value, around.now())),
        Column("state", "State"),
    ]
    room = terminal.width() - OTHER_COLUMNS if terminal.is_terminal(sys.stdout) else SUMMARY_SHOWN
    if room < SUMMARY_WORTH_SHOWING:
        return columns
    return [*columns, Column("summary", "Asked for", format=lambda value: _in_short(str(value), room))]


def _in_short(summary: str, room: int = SUMMARY_SHOWN) -> str:
    return summary if len(summary) <= room else f"{summary[: room - 1]}…"


def _rows(shown: Shown, around: Surroundings) -> Iterator[tuple[str, str]]:
    from holdfast.cli.clock import clock_time
    from holdfast.project.sizes import format_size

    listed, now = shown.listed, around.now()
    yield "Environment", listed.id
    yield "State", listed.state
    yield "Asked for", listed.summary
    yield "Python", listed.python
    yield "Size", f"{format_size(listed.size)}; removing it frees {format_size(listed.own)}"
    yield "Path", shown.path
    if listed.built:
        yield "Built", f"{clock_time(listed.built, now)}, in {listed.seconds:.1f} s"
    yield "Last use", clock_time(listed.used, now)
    if shown.lock is not None:
        backend = f", PyTorch for {shown.lock['backend']}" if shown.lock.get("backend") else ""
        yield "Resolved for", f"{shown.lock['platform']} with Python {shown.lock['python']}{backend}"
    for user in shown.users[:USERS_SHOWN]:
        yield "Used by", user.run_id + (", which is running" if user.is_alive else "")
    if len(shown.users) > USERS_SHOWN:
        yield "Used by", f"… {len(shown.users) - USERS_SHOWN} more: -o json"
    for package in shown.packages[:PACKAGES_SHOWN]:
        yield "Packages", package
    if len(shown.packages) > PACKAGES_SHOWN:
        yield "Packages", f"… {len(shown.packages) - PACKAGES_SHOWN} more: -o json"


def _is_sure(found: list[Listed], host: Host) -> bool:
    from holdfast.cli.asking import agreed
    from holdfast.project.sizes import format_size

    for each in found:
        text = f"  {each.id}  {format_size(each.own):>8}  {each.state:<10}  {_in_short(each.summary)}"
        terminal.notice(terminal.one_line(text))
    count = "this environment" if len(found) == 1 else f"these {len(found)} environments"
    return agreed(f"Remove {count} from {host.name}?", "Several environments are not removed unasked.")
