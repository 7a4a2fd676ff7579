"""`experiment cancel`: end a run, or give up one whose machine is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project
from holdfast.cli.options import DURATION, run_option, target_of_run
from holdfast.cli.output import Command
from holdfast.errors import ExitCode

if TYPE_CHECKING:
    from holdfast.model import Run
    from holdfast.project.folder import Project
    from holdfast.workbench.following.follower import Follower
    from holdfast.workbench.surroundings import Surroundings


@click.command("cancel", cls=Command)
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
    from holdfast.cli.finding import find_run, only_going_on
    from holdfast.cli.here import surroundings

    around = surroundings()
    project = current_project(around)
    run = run or only_going_on(project, around)
    if abandoned:
        return _abandon(project, run, around, sure)
    follower = find_run(project, run, target, around)
    if follower.read().status.is_final:
        return _leave(follower)
    return _cancel(follower, around, grace, no_wait)


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


def _leave(follower: Follower) -> int:
    """A run that has ended already; its outputs may still have to come home."""
    from holdfast.cli.events import Screen, status_sentence
    from holdfast.workbench import events

    screen = Screen(None, frame=False)
    try:
        for event in follower.follow():
            if not isinstance(event, (events.Ended, events.EndingBegan, events.Noted)):  # all of it is past
                screen.show(event)
    finally:
        screen.finish_line()
    found = follower.read()
    terminal.notice(f"{_named(found)} has ended already; nothing was canceled. {status_sentence(found)}")
    return 0


def _cancel(follower: Follower, around: Surroundings, grace: float | None, no_wait: bool) -> int:
    from holdfast.cli.events import Screen
    from holdfast.workbench import events
    from holdfast.workbench.records.cancel import cancel

    terminal.notice(f"Canceling {_named(follower.read())} …")
    screen, is_asked = Screen(None, frame=False), False
    try:
        for event in cancel(follower.project, follower.run_id, around, grace, wait=not no_wait):
            is_asked = is_asked or isinstance(event, events.EndAsked)
            if isinstance(event, events.EndingBegan) and event.cause == "cancel":
                screen.finish_line()
                _say_grace(event.grace, grace)
            else:
                screen.show(event)
            if isinstance(event, events.Ended):
                if event.run.ending and event.run.ending.reason.value != "canceled":
                    terminal.notice("It had ended before it could be canceled.")
                return 0
    except KeyboardInterrupt:
        screen.finish_line()
        return _say_interrupted(follower.run_id, is_asked)
    finally:
        screen.finish_line()
    if no_wait:
        terminal.notice("Asked the run to end.")
    return 0


def _named(run: Run) -> str:
    from holdfast.cli.finding import script_and_target

    return f"{run.run_id} ({script_and_target(run)})"


def _say_grace(begun: float, asked: float | None) -> None:
    """Where the ending began before this command, it may have shortened the time, and not lengthened it."""
    from holdfast.project.durations import format_duration

    terminal.notice(f"It has {format_duration(begun if asked is None else min(begun, asked))} to finish.")


def _say_interrupted(run_id: str, is_asked: bool) -> int:
    if is_asked:
        terminal.notice(f"Detached. The canceling goes on: {run_id}")
        terminal.hint(f"Follow it:   holdfast logs -f -r {run_id}\nWhere it is: holdfast status -r {run_id}")
    else:
        terminal.notice(f"Interrupted while the run was being asked to end; it may go on: {run_id}")
        terminal.hint(f"Whether it does: holdfast status -r {run_id}\nAsk again:       holdfast cancel -r {run_id}")
    return ExitCode.DETACHED
