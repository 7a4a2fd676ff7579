"""`experiment submit`: run a script, follow it, and exit as it did; `experiment prepare`: only build its
environment."""

from __future__ import annotations

import sys
from typing import Any

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import current_context, current_project
from holdfast.cli.early_connection import AHEAD
from holdfast.cli.misplaced import SubmitCommand, warn_misplaced
from holdfast.cli.options import (
    DURATION,
    configuration_options,
)
from holdfast.cli.output_format import CliCommand, Output, output_options
from holdfast.cli.screen import READ, Screen
from holdfast.cli.submit_options import (
    build_options,
    command_options,
    environment_options,
    given_options,
    gpu_options,
    outputs_options,
)
from holdfast.codec import encode
from holdfast.errors import ExitCode, UsageError
from holdfast.history import journal_fold as journals
from holdfast.history.queries import run_as_dict
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.model import Run
from holdfast.presenting.lines import short_id
from holdfast.presenting.plan_page import plan_lines
from holdfast.presenting.run_words import ending_lines
from holdfast.project.folder import Project
from holdfast.project.gpu_wishes import GpuWishes
from holdfast.shown_text import pasted
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting import submit
from holdfast.workbench.submitting.submit_request import CommandWishes, EnvironmentWishes, GivenWishes, SubmitRequest


@click.command(
    "submit",
    cls=SubmitCommand,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog="Everything after SCRIPT goes to it as it is; options of submit come before it. "
    "Ctrl-C only detaches: the run goes on.",
)
@configuration_options("Conda environment file")
@click.option("-a", "--async", "detached", is_flag=True, help="Return at once; prints the run id.")
@click.option("--wait", "quiet", is_flag=True, help="Wait for the end without showing the script's output.")
@click.option(
    "--time-limit", type=DURATION, metavar="DURATION", help="End the script after this time, e.g. 90s, 2h30m."
)
@click.option(
    "--grace",
    type=DURATION,
    metavar="DURATION",
    help="Time between SIGTERM and SIGKILL, for checkpoints. [default: 10s]",
)
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME", help="Pass this variable; its value is never written."
)
@click.option(
    "-s",
    "--spark-file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Spark dependencies, instead of the run configuration's.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="GLOB",
    help="Ship ignored files too: data/, 'data/*.bin'; may be repeated.",
)
@command_options
@given_options
@outputs_options
@environment_options
@gpu_options
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
@click.argument("script", type=click.Path())
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@output_options
def submit_command(
    run_configuration: str | None,
    target: str | None,
    detached: bool,
    quiet: bool,
    time_limit: float | None,
    grace: float | None,
    secrets: tuple[str, ...],
    include: tuple[str, ...],
    how: CommandWishes,
    given: GivenWishes,
    conda_file: str | None,
    spark_file: str | None,
    outputs: dict[str, Any],
    wishes: EnvironmentWishes,
    gpu: GpuWishes,
    dry_run: bool,
    script: str,
    arguments: tuple[str, ...],
    output: Output,
) -> int:
    """Run SCRIPT with ARGUMENTS on a compute target.

    The project is copied as it is now; a later edit does not reach the run. What it writes comes home by itself.
    Exits with the script's own exit code; Holdfast's own failures are 240 to 254.

    SCRIPT may be any command: `torchrun --nproc-per-node 4 train.py`, `-m package.train`, `bash run.sh`. It runs in
    the folder where you type it, with the run's Python first on its PATH. `--` before it says that it is no file.
    A notebook runs cell by cell, in its own folder: `train.ipynb -p lr=0.1`.

    SCRIPT may also be a run configuration, `NAME.runconfig`: its `ArgumentVector` then names the script, and
    ARGUMENTS follow its own.
    """
    context = current_context()
    _check_waiting(detached, quiet, time_limit)
    _check_wishes(wishes, conda_file)
    named, chosen = _named(script, run_configuration)
    files = (conda_file, spark_file)
    request = SubmitRequest(
        *(named, arguments, chosen, target, time_limit, grace, secrets, *files),
        **outputs,
        include=include,
        environment=wishes,
        gpu=gpu,
        how=how,
        given=given,
    )
    project = current_project(context)
    warn_misplaced(project, request, context)
    if dry_run:
        return _show_plan(project, request, context, output)
    return _submit(project, request, context, detached, quiet, output)


def _named(script: str, run_configuration: str | None) -> tuple[str | None, str | None]:
    """The script and the run configuration; SCRIPT may be either."""
    if not script.endswith(".runconfig"):
        return script, run_configuration
    if run_configuration is not None:
        raise UsageError("A run configuration is named twice.", "Leave out -c, or name a script.")
    return None, script


def _check_waiting(detached: bool, quiet: bool, time_limit: float | None) -> None:
    if detached and quiet:
        raise UsageError("-a does not wait, and --wait does.", "Leave out one of them.")
    if time_limit == 0:
        raise UsageError("A time limit of 0 leaves no time.", "Leave out --time-limit for none.")


def _check_wishes(wishes: EnvironmentWishes, conda_file: str | None) -> None:
    if wishes.of_run is not None and wishes.upgrade:
        raise UsageError("--environment-of wants the same packages, and --upgrade others.", "Leave out one of them.")
    if wishes.of_run is not None and conda_file is not None:
        raise UsageError("--environment-of takes packages from a run, and -d from a file.", "Leave out one of them.")
    if wishes.of_run is not None and wishes.parts:
        raise UsageError("--environment-of takes packages from a run, so it has no extras.", "Leave out one of them.")


def _show_plan(project: Project, request: SubmitRequest, context: Context, output: Output) -> int:
    screen = Screen(only=READ)
    for event in submit.dry_run(project, request, context):
        if isinstance(event, events.Planned):
            if output.chosen_format() == "table":
                for line in plan_lines(event.plan):
                    terminal.data(line)
            else:
                output.show(encode(event.plan))
        else:
            screen.show(event)
    return 0


def _submit(
    project: Project, request: SubmitRequest, context: Context, detached: bool, quiet: bool, output: Output
) -> int:
    wants_record = output.format is not None or output.query is not None
    destination = None if quiet else (sys.stderr if wants_record else sys.stdout)
    screen = Screen(destination, frame=not detached)
    run_id, code, is_started = "", 0, False
    try:
        ahead = click.get_current_context().meta.get(AHEAD)
        for event in submit.submit(project, request, context, wait=not detached, ahead=ahead):
            if isinstance(event, events.RunCreated):  # noted before it is shown: Ctrl-C may come in between
                run_id = event.run_id
            elif isinstance(event, events.RunStarted):
                is_started = True
            screen.show(event)
            if isinstance(event, events.Ended):
                code = event.run.ending.exit_code if event.run.ending else 0
                if wants_record:
                    output.show(run_as_dict(event.run))
    except KeyboardInterrupt:
        screen.finish_line()
        return say_detached(run_id) if is_started else _say_interrupted(run_id)
    if detached:
        if wants_record:
            output.show(run_as_dict(read_run(RunFolders(project.state_directory), run_id)))
        else:
            terminal.data(run_id)
        terminal.hint(
            f"Follow it: holdfast logs -f -r {pasted(run_id)}\nCancel it: holdfast cancel -r {pasted(run_id)}"
        )
    return code


def _say_interrupted(run_id: str, what: str = "run") -> int:
    """Before the host has confirmed the start. `what` is being started."""
    if run_id:
        terminal.notice(f"Interrupted while the {what} was being started; it may have begun: {run_id}")
        terminal.hint(f"Whether it did: holdfast status -r {pasted(run_id)}")
    else:
        terminal.notice(f"Interrupted before the {what} was created.")
    return ExitCode.DETACHED


def say_detached(run_id: str) -> int:
    terminal.notice(f"Detached. The run goes on: {run_id}")
    terminal.hint(
        f"Follow it again: holdfast logs -f -r {pasted(run_id)}\nCancel it:       holdfast cancel -r {pasted(run_id)}"
    )
    return ExitCode.DETACHED


@click.command("prepare", cls=CliCommand)
@configuration_options()
@build_options
def prepare_command(
    run_configuration: str | None, target: str | None, conda_file: str | None, wishes: EnvironmentWishes
) -> int:
    """Build the environment that a run with this configuration would use, and run nothing.

    An environment that is there costs a moment. A failure ends with 250, as it would for a run.
    """
    request = SubmitRequest(
        run_configuration=run_configuration,
        target=target,
        conda_file=conda_file,
        environment=wishes,
        prepare_only=True,
    )
    return _prepare(request, current_context())


def _prepare(request: SubmitRequest, context: Context) -> int:
    screen = Screen()
    run_id, is_started, ready = "", False, None
    try:
        ahead = click.get_current_context().meta.get(AHEAD)
        for event in submit.submit(current_project(context), request, context, ahead=ahead):
            match event:
                case events.Recorded(event=journals.EnvironmentUsed() as used) if used.id:
                    ready = used
                case events.Ended():
                    screen.finish_line()
                    if event.run.ending is None or event.run.ending.exit_code != 0:
                        for line in ending_lines(event.run):
                            terminal.show(line)
                        return ExitCode.INTERNAL if event.run.ending is None else event.run.ending.exit_code
                    terminal.notice(_is_ready(event.run, ready))
                case events.RunCreated() | events.RunStarted():
                    is_new = not run_id
                    run_id, is_started = event.run_id, isinstance(event, events.RunStarted)
                    screen.show(event)
                    if is_new:
                        screen.finish_line()
                        terminal.notice(f"RunId: {run_id}")
                case _:
                    screen.show(event)
    except KeyboardInterrupt:
        screen.finish_line()
        return _say_build_detached(run_id) if is_started else _say_interrupted(run_id, "build")
    return 0


def _is_ready(run: Run, ready: journals.EnvironmentUsed | None) -> str:
    count = f"{len(run.packages)} package{'' if len(run.packages) == 1 else 's'}"
    was_built = ready is not None and ready.built
    how = f", built in {ready.seconds:.1f} s" if ready is not None and was_built else ""
    verb = "is" if was_built else "was"
    name = short_id(run.environment or "")
    return f"Environment {name} {verb} ready: Python {run.python}, {count}{how}."


def _say_build_detached(run_id: str) -> int:
    terminal.notice("Detached. The environment goes on being built.")
    terminal.hint(
        f"How far it is: holdfast status -r {pasted(run_id)}\nEnd it:        holdfast cancel -r {pasted(run_id)}"
    )
    return ExitCode.DETACHED
