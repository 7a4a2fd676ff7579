"""`holdfast experiment`: submit, prepare, status, logs, cancel, clean, diagnostics. Short forms are the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli import terminal
from holdfast.cli.ahead import AHEAD
from holdfast.cli.here import current_project
from holdfast.cli.options import DURATION, run_option, target_of_run
from holdfast.cli.output import Column, Group, Output, output_options
from holdfast.cli.preparing import prepare_command
from holdfast.cli.reaching import forward_command, shell_command
from holdfast.cli.stacks import stacks_command
from holdfast.cli.submitting import say_detached, submit_command
from holdfast.cli.upkeep import clean_command, diagnostics_command
from holdfast.errors import ExitCode

if TYPE_CHECKING:
    from holdfast.project.folder import Project
    from holdfast.workbench.surroundings import Surroundings

group = Group("experiment", help="Submit, follow, cancel and clean runs.")
group.add_command(submit_command)
group.add_command(prepare_command)
group.add_command(shell_command)
group.add_command(forward_command)
group.add_command(stacks_command)
group.add_command(clean_command)
group.add_command(diagnostics_command)


_STATUS_COLUMNS = [
    Column("run_id", "RunId"),
    Column("status", "Status"),
    Column("phase", "Phase"),
    Column("target", "Target"),
    Column("script_name", "Script"),
    Column("duration", "Duration"),
    Column("reason_text", "How it ended"),
    Column("remedy", "Remedy"),
    Column("verdict", "GPU"),
    Column("note", "Latest note"),
]


@group.command("status")
@run_option(required=False)
@target_of_run()
@output_options
def status_command(run: str, target: str | None, output: Output) -> None:
    """Show where a run is, after asking its machine."""
    from holdfast.cli.finding import asked_about
    from holdfast.cli.here import surroundings
    from holdfast.cli.run_table import host_state, status_text
    from holdfast.history.queries import run_as_dict
    from holdfast.history.verdicts import in_full as verdict_text
    from holdfast.project.durations import format_duration
    from holdfast.workbench.records.silence import silences

    around = surroundings()
    project = current_project(around)
    found = asked_about(project, run, target, around).read()
    record = run_as_dict(found)
    silence = silences(project, [found.run_id], around).get(found.run_id) if found.ending is None else None
    if output.chosen_format() == "table" and output.query is None:
        running = found.running_time(around.now())
        record["duration"] = None if running is None else format_duration(round(running))
        record["status"] = status_text(found.status.value, silence)
        record |= {"verdict": verdict_text(found), "note": found.notes[-1] if found.notes else None}
        columns = [column for column in _STATUS_COLUMNS if record.get(column.key)]
        output.show({column.key: record[column.key] for column in columns}, columns)
    else:
        output.show(record if silence is None else record | {"host_state": host_state(silence)})


@group.command("logs")
@run_option(required=False)
@target_of_run()
@click.option("-f", "--follow", "following", is_flag=True, help="Stay until the run ends; exits with its code.")
@click.option("--control", is_flag=True, help="The machinery's log (installers) instead of the script's output.")
def logs_command(run: str, target: str | None, following: bool, control: bool) -> int:
    """Print the output of a run, from its first byte."""
    from holdfast.cli.events import Screen
    from holdfast.cli.finding import asked_about, find_run
    from holdfast.cli.here import surroundings
    from holdfast.history.folder import RunFolders
    from holdfast.workbench import events

    around = surroundings()
    project = current_project(around)
    if control and run == "last":  # also a preparation: the installer's words are what it has
        run = RunFolders(project.state_directory).newest() or run
    if following and not control:
        follower = find_run(project, run, target, around)
        ahead = click.get_current_context().meta.get(AHEAD)
        begun = ahead.take(follower.product.host) if ahead else None
        if begun is not None:
            follower.adopt(begun)
        screen = Screen(sys.stdout, frame=False, age=around.now() - follower.submission.created)
        try:
            for event in follower.follow():
                screen.show(event)
                if isinstance(event, events.Ended) and event.run.ending:
                    return event.run.ending.exit_code
        except KeyboardInterrupt:
            screen.finish_line()
            return say_detached(follower.run_id)
    follower = asked_about(project, run, target, around)
    path = follower.folder / ("control_log" if control else "driver_log")
    if path.exists():
        with path.open("rb") as source:
            while data := source.read(1 << 20):
                sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    if follower.read().ending is None and not control:
        terminal.notice("The run has not ended; holdfast logs -f follows it.")
    return 0


@group.command("cancel")
@run_option(required=False, otherwise="the only one that has not ended; machines are asked where several may be meant")
@target_of_run()
@click.option("--grace", type=DURATION, metavar="DURATION", help="Time between SIGTERM and SIGKILL, for this once.")
@click.option("--no-wait", is_flag=True, help="Ask and return at once.")
@click.option(
    "--abandon",
    "abandoned",
    is_flag=True,
    help="Of a machine that is gone for good: wait for the run no more, and record that. Refused if it answers.",
)
@click.option("-y", "--yes", "sure", is_flag=True, help="Do not ask before a run is abandoned.")
def cancel_command(
    run: str | None, target: str | None, grace: float | None, no_wait: bool, abandoned: bool, sure: bool
) -> int:
    """End a run: SIGTERM, a grace time for its checkpoint, then every process of it.

    A run that has ended is left as it is. Ctrl-C stops the waiting, not the canceling.
    """
    from holdfast.cli.events import Screen
    from holdfast.cli.finding import find_run, only_going_on
    from holdfast.cli.here import surroundings
    from holdfast.workbench import events
    from holdfast.workbench.records.cancel import cancel

    around = surroundings()
    project = current_project(around)
    run = run or only_going_on(project, around)
    if abandoned:
        return _abandon(project, run, around, sure)
    follower = find_run(project, run, target, around)
    had_ended = follower.read().status.is_final
    screen = Screen(None, frame=False)
    try:
        for event in cancel(follower.project, follower.run_id, around, grace, wait=not no_wait):
            screen.show(event)
            if isinstance(event, events.Ended):
                if had_ended:
                    terminal.notice("It has ended already; nothing was canceled.")
                elif event.run.ending and event.run.ending.reason.value != "canceled":
                    terminal.notice("It had ended before it could be canceled.")
                return 0
    finally:
        screen.finish_line()
    if no_wait:
        terminal.notice("Asked the run to end.")
    return 0


def _abandon(project: Project, run: str, around: Surroundings, sure: bool) -> int:
    from holdfast.cli.asking import agreed
    from holdfast.workbench.records.abandoning import abandon, try_to_ask

    unasked = try_to_ask(project, run, around)
    terminal.notice(unasked.message)
    if not sure and not agreed(f"Wait for {unasked.run_id} no more?", "A run is not abandoned unasked."):
        return ExitCode.DECLINED
    ended = abandon(project, unasked, around)
    if ended.ending is not None:
        terminal.notice(f"Status: {ended.status.value}. {ended.how_it_ended()}")
        terminal.hint(ended.remedy())
    return 0
