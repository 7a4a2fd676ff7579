"""`experiment shell` and `forward`: a shell where a run runs, and its ports; `environment shell`."""

from __future__ import annotations

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import any_project, current_context, current_project
from holdfast.cli.options import (
    environment_ids,
    environment_target,
    run_configuration_option,
    run_names,
    run_option,
    target_option,
)
from holdfast.cli.output_format import CliCommand
from holdfast.errors import UsageError
from holdfast.presenting.event_lines import lines
from holdfast.shown_text import pasted
from holdfast.workbench.machines import shell_session
from holdfast.workbench.machines.port_forward import forward
from holdfast.workbench.reach import events
from holdfast.workbench.reach.named_machines import host_of_target

PORT = click.IntRange(1, 65535)


@click.command(
    "shell",
    cls=CliCommand,
    context_settings={"allow_interspersed_args": False},
    epilog="With -c or -t and no run: in the account's home, as a run with that configuration would begin.",
)
@click.option(
    "-r", "--run", "run", metavar="RUN", shell_complete=run_names, help="Run id, its beginning or end, or `last`."
)
@run_configuration_option("Run configuration.")
@target_option("Compute target.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]…")
def shell_command(run: str | None, run_configuration: str | None, target: str | None, words: tuple[str, ...]) -> int:
    """Open a shell where a run runs: in its folder, with its variables and its Python.

    With COMMAND it is run instead, such as `nvidia-smi`: a program and its words; for pipes and variables write
    `sh -c "…"`. The exit code is passed on. Values of secrets are not there.
    """
    context = current_context()
    project = current_project(context)
    if run is not None:
        if run_configuration is not None:
            raise UsageError("A run has its configuration already.", "Leave out -c, or leave out -r.")
        return shell_session.enter_run(project, run, words, context)
    if run_configuration is None and target is None:
        raise UsageError("Say where.", "holdfast experiment shell -r RUN, or -t TARGET.")
    return shell_session.enter_target(project, run_configuration, target, words, context)


@click.command("forward", cls=CliCommand, epilog="Example: holdfast experiment forward -r last 6006")
@run_option(required=False)
@click.option("--local", "near_port", type=PORT, metavar="PORT", help="Port of this machine. [default: the same]")
@click.argument("port", type=PORT)
def forward_command(run: str, near_port: int | None, port: int) -> int:
    """Bring PORT of a run's machine (TensorBoard, a debugger) to this one, until Ctrl-C.

    Reaches what listens on 127.0.0.1 over there, whether it does already or not. Prints the address here: the same
    port, or a free one where that is taken. A link that breaks is taken up again.
    """
    context = current_context()
    try:
        for event in forward(current_project(context), run, port, near_port, context):
            if isinstance(event, (events.PortOpened, events.ConnectionLost, events.Warned)):
                for line in lines(event, context.now()):
                    terminal.show(line)
    except KeyboardInterrupt:
        terminal.end_of_line()
    return 0


@click.command("shell", cls=CliCommand, context_settings={"allow_interspersed_args": False})
@environment_target
@click.argument("name", metavar="ID", shell_complete=environment_ids)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]…")
def environment_shell_command(target: str | None, address: str | None, name: str, words: tuple[str, ...]) -> int:
    """Open a shell in an environment, or run COMMAND in it: `python`, `pip` and the like are its own.

    The beginning of an ID is enough. The environment cannot be removed meanwhile, and its files are read-only.
    """
    if words and words[0] != "--" and words[0].startswith("-"):
        given = " ".join(map(pasted, words[:2] if words[0] in ("-t", "--target") else words[:1]))
        raise UsageError(
            f"`{given}` stands after the id, where the command is expected.",
            f"Options come first: holdfast environment shell {given} {pasted(name)}",
        )
    context = current_context()
    host = host_of_target(any_project(context), target, context, address)
    return shell_session.enter_environment(host, name, words[words[:1] == ("--",) :], context)
