"""`holdfast experiment`: submit, prepare, status, logs, cancel, clean, diagnostics. Short forms are the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli import terminal
from holdfast.cli.ahead import AHEAD
from holdfast.cli.canceling import cancel_command
from holdfast.cli.here import current_project
from holdfast.cli.options import run_option, target_of_run
from holdfast.cli.output import Column, Group, Output, output_options
from holdfast.cli.preparing import prepare_command
from holdfast.cli.reaching import forward_command, shell_command
from holdfast.cli.stacks import stacks_command
from holdfast.cli.submitting import say_detached, submit_command
from holdfast.cli.upkeep import clean_command, diagnostics_command

if TYPE_CHECKING:
    from holdfast.workbench.following.follower import Follower

group = Group("experiment", help="Submit, follow, cancel and clean runs.")
group.add_command(submit_command)
group.add_command(prepare_command)
group.add_command(shell_command)
group.add_command(forward_command)
group.add_command(stacks_command)
group.add_command(cancel_command)
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
    from holdfast.history.verdicts import is_repeated
    from holdfast.project.durations import format_duration, short_duration
    from holdfast.workbench.records.silence import silences

    around = surroundings()
    project = current_project(around)
    follower = asked_about(project, run, target, around)
    found = follower.read()
    record = run_as_dict(found)
    silence = silences(project, [found.run_id], around).get(found.run_id) if found.ending is None else None
    if output.chosen_format() == "table" and output.query is None:
        running = found.running_time(around.now())
        record["duration"] = short_duration(running) or None
        record["status"] = status_text(found.status.value, silence)
        notes = [each for each in found.notes if not is_repeated(each, found)]
        if (left := follower.time_to_finish()) is not None:
            record["phase"] = f"{found.phase} ({format_duration(round(left))} left)"
        record |= {"verdict": verdict_text(found), "note": notes[-1] if notes else None}
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
    if not control:
        _say_what_output_does_not(follower)
    return 0


def _say_what_output_does_not(follower: Follower) -> None:
    """That there is more to come, or why there is none."""
    from holdfast.cli.events import status_sentence

    run = follower.read()
    if run.ending is None:
        terminal.notice("The run has not ended; holdfast logs -f follows it.")
    elif run.started is None:
        what = "The script was not started. " if run.submission.script_name else ""
        terminal.notice(f"{what}{status_sentence(run)}")
        terminal.hint(run.remedy())
        log = follower.folder / "control_log"
        if "--control" not in run.remedy() and log.exists() and log.stat().st_size:
            terminal.hint(f"What was done before that: holdfast logs --control -r {run.run_id}")
