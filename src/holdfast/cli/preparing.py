"""`experiment prepare`: build an environment before a run needs it, and see how that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli import terminal
from holdfast.cli.ahead import AHEAD
from holdfast.cli.here import current_project
from holdfast.cli.options import build_options, configuration_options
from holdfast.cli.output import Command
from holdfast.cli.submitting import say_interrupted
from holdfast.errors import ExitCode

if TYPE_CHECKING:
    from holdfast.model import Run
    from holdfast.workbench import events
    from holdfast.workbench.submitting.planning import EnvironmentWishes, Request
    from holdfast.workbench.surroundings import Surroundings


@click.command("prepare", cls=Command)
@configuration_options
@build_options
def prepare_command(
    run_configuration: str | None, target: str | None, conda_file: str | None, wishes: EnvironmentWishes
) -> int:
    """Build the environment that a run with this configuration would use, and run nothing.

    An environment that is there costs a moment. A failure ends with 250, as it would for a run.
    """
    from holdfast.cli.here import surroundings
    from holdfast.workbench.submitting.planning import Request

    request = Request(
        run_configuration=run_configuration,
        target=target,
        conda_file=conda_file,
        environment=wishes,
        prepare_only=True,
    )
    return _prepare(request, surroundings())


def _prepare(request: Request, around: Surroundings) -> int:
    from holdfast.cli.events import Screen, summary
    from holdfast.workbench import events
    from holdfast.workbench.submitting.submit import submit

    screen = Screen(None, frame=False)
    run_id, is_started, ready = "", False, None
    try:
        ahead = click.get_current_context().meta.get(AHEAD)
        for event in submit(current_project(around), request, around, ahead=ahead):
            match event:
                case events.EnvironmentReady():
                    ready = event
                case events.Ended():
                    screen.finish_line()
                    if event.run.ending is None or event.run.ending.exit_code != 0:
                        summary(event.run)
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
        return _say_detached(run_id) if is_started else say_interrupted(run_id, "build")
    return 0


def _is_ready(run: Run, ready: events.EnvironmentReady | None) -> str:
    from holdfast.workbench.environments.listing import short

    count = f"{len(run.packages)} package{'' if len(run.packages) == 1 else 's'}"
    was_built = ready is not None and ready.built
    how = f", built in {ready.seconds:.1f} s" if ready is not None and was_built else ""
    verb = "is" if was_built else "was"
    name = short(run.environment or "")
    return terminal.one_line(f"Environment {name} {verb} ready: Python {run.python}, {count}{how}.")


def _say_detached(run_id: str) -> int:
    terminal.notice("Detached. The environment goes on being built.")
    terminal.hint(f"How far it is: holdfast status -r {run_id}\nEnd it:        holdfast cancel -r {run_id}")
    return ExitCode.DETACHED
