"""`experiment shell` and `experiment forward`: into a run's surroundings, and its ports to here."""

from __future__ import annotations

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project
from holdfast.cli.options import run_names, run_option, runconfig_names, target_names
from holdfast.cli.output import Command
from holdfast.errors import UsageError

PORT = click.IntRange(1, 65535)


@click.command(
    "shell",
    cls=Command,
    context_settings={"allow_interspersed_args": False},
    epilog="With -c or -t and no run: in the account's home, as a run with that configuration would begin.",
)
@click.option(
    "-r", "--run", "run", metavar="RUN", shell_complete=run_names, help="Run id, its beginning or end, or `last`."
)
@click.option("-c", "--run-configuration", metavar="NAME", shell_complete=runconfig_names, help="Run configuration.")
@click.option("-t", "--target", metavar="NAME", shell_complete=target_names, help="Compute target.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]…")
def shell_command(run: str | None, run_configuration: str | None, target: str | None, words: tuple[str, ...]) -> int:
    """Open a shell where a run runs: in its folder, with its variables and its Python.

    With COMMAND it is run instead, such as `nvidia-smi`: a program and its words; for pipes and variables write
    `sh -c "…"`. The exit code is passed on. Values of secrets are not there.
    """
    from holdfast.cli.here import surroundings
    from holdfast.workbench.machines.shells import enter_run, enter_target

    around = surroundings()
    project = current_project(around)
    if run is not None:
        if run_configuration is not None:
            raise UsageError("A run has its configuration already.", "Leave out -c, or leave out -r.")
        return enter_run(project, run, words, around)
    if run_configuration is None and target is None:
        raise UsageError("Say where.", "holdfast experiment shell -r RUN, or -t TARGET.")
    return enter_target(project, run_configuration, target, words, around)


@click.command("forward", cls=Command, epilog="Example: holdfast experiment forward -r last 6006")
@run_option(required=False)
@click.option("--local", "near_port", type=PORT, metavar="PORT", help="Port of this machine. [default: the same]")
@click.argument("port", type=PORT)
def forward_command(run: str, near_port: int | None, port: int) -> int:
    """Bring PORT of a run's machine (TensorBoard, a debugger) to this one, until Ctrl-C.

    Reaches what listens on 127.0.0.1 over there, whether it does already or not. Prints the address here: the same
    port, or a free one where that is taken. A link that breaks is taken up again.
    """
    from holdfast.cli.here import surroundings
    from holdfast.workbench import events
    from holdfast.workbench.machines.forwarding import forward

    around = surroundings()
    try:
        for event in forward(current_project(around), run, port, near_port, around):
            match event:
                case events.PortOpened():
                    click.echo(f"http://127.0.0.1:{event.near_port}")
                    other = "" if event.near_port == event.port else f" ({event.port} is taken here)"
                    terminal.notice(f"leads to port {event.port} of {event.host}{other}. Ctrl-C ends it.")
                case events.ConnectionLost():
                    terminal.notice(f"connection lost ({event.reason}), trying again in {event.next_try:g} s …")
                case events.Warned():
                    terminal.warning(event.message)
                    terminal.hint(event.remedy)
                case _:
                    pass
    except KeyboardInterrupt:
        terminal.end_of_line()
    return 0
