"""What can be asked of a run: `status`, `logs`, `cancel` and `stacks`."""

from __future__ import annotations

import sys

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import current_context, current_project
from holdfast.cli.early_connection import AHEAD
from holdfast.cli.find_run import asked_about, find_run, only_going_on
from holdfast.cli.options import DURATION, run_option, target_of_run
from holdfast.cli.output_format import CliCommand, Column, Output, output_options
from holdfast.cli.screen import Screen, working
from holdfast.cli.submit_command import say_detached
from holdfast.errors import ExitCode
from holdfast.frozen import asdict
from holdfast.history import journal_fold as journals
from holdfast.history.queries import run_as_dict
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.replies import Stack
from holdfast.model import Run, Status
from holdfast.presenting.run_words import (
    host_state,
    notes_of,
    queued_words,
    script_and_target,
    status_mark,
    status_sentence,
    verdict_text,
)
from holdfast.project.folder import Project
from holdfast.project.quantities import format_duration, short_duration
from holdfast.shown_text import one_line, pasted
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import events
from holdfast.workbench.reach.contacts import silences
from holdfast.workbench.reach.context import Context
from holdfast.workbench.records import cancel as canceling
from holdfast.workbench.records.cancel import abandon, try_to_ask
from holdfast.workbench.records.run_stacks import stacks_of

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


@click.command("status", cls=CliCommand)
@run_option(required=False)
@target_of_run()
@output_options
def status_command(run: str, target: str | None, output: Output) -> None:
    """Show where a run is, after asking its machine."""
    context = current_context()
    project = current_project(context)
    session = asked_about(project, run, target, context)
    found = session.read()
    record = run_as_dict(found)
    silence = silences(project, [found.run_id], context).get(found.run_id) if found.ending is None else None
    if output.chosen_format() == "table" and output.query is None:
        running = found.running_time(session.time_there())
        record["duration"] = short_duration(running) or None
        record["status"] = status_mark(found, silence, context.now()).text
        notes = notes_of(found)
        if (left := session.time_to_finish()) is not None:
            record["phase"] = f"{found.phase} ({format_duration(round(left))} left)"
        record |= {"verdict": verdict_text(found), "note": notes[-1] if notes else None}
        columns = [column for column in _STATUS_COLUMNS if record.get(column.key)]
        output.show({column.key: record[column.key] for column in columns}, columns)
    else:
        output.show(record if silence is None else record | {"host_state": host_state(silence)})


@click.command("logs", cls=CliCommand)
@run_option(required=False)
@target_of_run()
@click.option("-f", "--follow", "following", is_flag=True, help="Stay until the run ends; exits with its code.")
@click.option("--control", is_flag=True, help="The machinery's log (installers) instead of the script's output.")
def logs_command(run: str, target: str | None, following: bool, control: bool) -> int:
    """Print the output of a run, from its first byte."""
    context = current_context()
    project = current_project(context)
    if control and run == "last":  # a preparation counts too: it has the installer's output
        run = RunFolders(project.state_directory).newest() or run
    if following and not control:
        session = find_run(project, run, target, context)
        ahead = click.get_current_context().meta.get(AHEAD)
        begun = ahead.take(session.host) if ahead else None
        if begun is not None:
            session.adopt(begun)
        screen = Screen(sys.stdout, frame=False, age=context.now() - session.submission.created)
        try:
            for event in Follower(session).follow():
                screen.show(event)
                if isinstance(event, events.Ended) and event.run.ending:
                    return event.run.ending.exit_code
        except KeyboardInterrupt:
            screen.finish_line()
            return say_detached(session.run_id)
    session = asked_about(project, run, target, context)
    path = session.folder / ("control_log" if control else "driver_log")
    if path.exists():
        with path.open("rb") as source:
            while data := source.read(1 << 20):
                terminal.pass_on(sys.stdout, data)
        sys.stdout.buffer.flush()
    if not control:
        _say_what_output_does_not(session)
    return 0


def _say_what_output_does_not(session: Session) -> None:
    """Says that there is more to come, or why there is none."""
    run = session.read()
    if run.status is Status.QUEUED:
        terminal.notice(f"The run has not started ({queued_words(run.phase)}); holdfast logs -f waits for it.")
    elif run.ending is None:
        terminal.notice("The run has not ended; holdfast logs -f follows it.")
    elif run.started is None:
        what = "The script was not started. " if run.submission.script_name else ""
        terminal.notice(f"{what}{status_sentence(run)}")
        terminal.hint(run.remedy())
        log = session.folder / "control_log"
        if "--control" not in run.remedy() and log.exists() and log.stat().st_size:
            terminal.hint(f"What was done before that: holdfast logs --control -r {pasted(run.run_id)}")


@click.command("cancel", cls=CliCommand)
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
    context = current_context()
    project = current_project(context)
    run = run or only_going_on(project, context)
    if abandoned:
        return _abandon(project, run, context, sure)
    session = find_run(project, run, target, context)
    if session.read().status.is_final:
        return _leave(session)
    return _cancel(session, context, grace, no_wait)


def _abandon(project: Project, run: str, context: Context, sure: bool) -> int:
    unreachable = try_to_ask(project, run, context)
    terminal.notice(unreachable.message)
    if not sure and not terminal.agreed(
        f"Wait for {unreachable.run_id} no more?", "Abandoning a run needs confirmation."
    ):
        return ExitCode.DECLINED
    ended = abandon(project, unreachable, context)
    if ended.ending is not None:
        terminal.notice(f"Status: {ended.status.value}. {ended.how_it_ended()}")
        terminal.hint(ended.remedy())
    return 0


def _leave(session: Session) -> int:
    """Fetches what is still missing of a run that has ended already."""
    screen = Screen()
    try:
        for event in Follower(session).follow():
            told = event.event if isinstance(event, events.Recorded) else event
            if not isinstance(told, (events.Ended, events.Noted, journals.EndingBegan, journals.JournalNote)):  # past
                screen.show(event)
    finally:
        screen.finish_line()
    found = session.read()
    terminal.notice(f"{_named(found)} has ended already; nothing was canceled. {status_sentence(found)}")
    return 0


def _cancel(session: Session, context: Context, grace: float | None, no_wait: bool) -> int:
    terminal.notice(f"Canceling {_named(session.read())} …")
    screen, is_asked = Screen(), False
    try:
        for event in canceling.cancel(session.project, session.run_id, context, grace, wait=not no_wait):
            is_asked = is_asked or isinstance(event, events.EndAsked)
            match event:
                case events.Recorded(event=journals.EndingBegan(cause="cancel") as ending):
                    screen.finish_line()
                    # Where the ending began before this command, it may have shortened the time, not lengthened it.
                    left = ending.grace if grace is None else min(ending.grace, grace)
                    terminal.notice(f"It has {format_duration(left)} to finish.")
                case _:
                    screen.show(event)
            if isinstance(event, events.Ended):
                if event.run.ending and event.run.ending.reason.value != "canceled":
                    terminal.notice("It had ended before it could be canceled.")
                return 0
    except KeyboardInterrupt:
        screen.finish_line()
        return _say_interrupted(session.run_id, is_asked)
    finally:
        screen.finish_line()
    if no_wait:
        terminal.notice("Asked the run to end.")
    return 0


def _named(run: Run) -> str:
    return f"{run.run_id} ({script_and_target(run)})"


def _say_interrupted(run_id: str, is_asked: bool) -> int:
    if is_asked:
        terminal.notice(f"Detached. The canceling goes on: {run_id}")
        terminal.hint(
            f"Follow it:   holdfast logs -f -r {pasted(run_id)}\nWhere it is: holdfast status -r {pasted(run_id)}"
        )
    else:
        terminal.notice(f"Interrupted while the run was being asked to end; it may go on: {run_id}")
        terminal.hint(
            f"Whether it does: holdfast status -r {pasted(run_id)}\n"
            f"Ask again:       holdfast cancel -r {pasted(run_id)}"
        )
    return ExitCode.DETACHED


@click.command(
    "stacks",
    cls=CliCommand,
    epilog="Ask twice, some seconds apart: a line that stays the same is where the run hangs.",
)
@run_option(required=False)
@target_of_run()
@output_options
def stacks_command(run: str, target: str | None, output: Output) -> None:
    """Show what the Python processes of a run are doing now: the stack of every thread.

    For a run that says nothing any more. Every process of it is listed, also those of data loaders and in containers;
    one that has no stack to show says why. The most recent call comes first. Threads stand in the order in which
    Python's faulthandler writes them: `Current thread` is the one that answered, mostly the script's main one, and
    `Thread 0x…` are the others.
    The run goes on undisturbed; nothing need be installed, and a Python that hangs in a library answers too.
    """
    context = current_context()
    session = find_run(current_project(context), run, target, context)
    with working("asking for stacks …"):
        found = stacks_of(session)
    if output.query is not None or output.chosen_format() != "table":
        output.show([asdict(each) | {"stack": each.stack or None, "why": each.why or None} for each in found])
        return
    for each in found:
        for line in _stack_lines(each):
            terminal.data(line)
    if not any(each.stack for each in found):
        terminal.notice("No process of the run has a stack to show.")


def _stack_lines(stack: Stack) -> list[str]:
    """Indented lines are the process's own; without a stack one line says it all."""
    head = f"{stack.pid} {stack.name} ({stack.state})"
    if not stack.stack:
        return [f"{head}: no stack. {stack.why}"]
    lines = [_fitting(head, stack.command)]
    if stack.why:
        lines.append(f"  {stack.why}")
    lines += [f"  {line}".rstrip() for line in stack.stack.rstrip("\n").split("\n")]
    return [*lines, ""]


def _fitting(head: str, command: str) -> str:
    """Cut to the terminal's width: of paths the ends are kept, which name the program and the script. `-o json` has all
    of it."""
    width = max(terminal.width(), 80)
    words = one_line(command).split(" ") if command else []
    line = " ".join([f"{head}:", *words]) if words else head
    for place, word in enumerate(words):
        if len(line) > width and word.count("/") > 1 and not word.startswith("-"):
            words[place] = "…/" + word.rstrip("/").rpartition("/")[2]
            line = " ".join([f"{head}:", *words])
    return line if len(line) <= width else line[: width - 2] + " …"
