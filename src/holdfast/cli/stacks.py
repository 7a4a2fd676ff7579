"""`experiment stacks`: where a run that seems to hang is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project
from holdfast.cli.options import run_option, target_of_run
from holdfast.cli.output import Command, Output, output_options

if TYPE_CHECKING:
    from holdfast.workbench.records.stacks import Stack


@click.command(
    "stacks",
    cls=Command,
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
    The run goes on as if nobody had asked; nothing need be installed, and a Python that hangs in a library answers too.
    """
    from holdfast.cli.finding import find_run
    from holdfast.cli.here import surroundings
    from holdfast.cli.progress import working
    from holdfast.workbench.records.stacks import stacks_of

    around = surroundings()
    follower = find_run(current_project(around), run, target, around)
    with working("asking for stacks …"):
        found = stacks_of(follower)
    if output.query is not None or output.chosen_format() != "table":
        output.show([_as_dict(each) for each in found])
        return
    for each in found:
        for line in _page(each):
            click.echo(line)
    if not any(each.stack for each in found):
        terminal.notice("No process of the run has a stack to show.")


def _as_dict(stack: Stack) -> dict[str, Any]:
    from holdfast.frozen import asdict

    return asdict(stack) | {"stack": stack.stack or None, "why": stack.why or None}


def _page(stack: Stack) -> list[str]:
    """What is indented is the process's own; without a stack one line says it all."""
    head = f"{stack.pid} {stack.name} ({stack.state})"
    if not stack.stack:
        return [terminal.one_line(f"{head}: no stack. {stack.why}")]
    lines = [_fitting(head, stack.command)]
    if stack.why:
        lines.append(terminal.one_line(f"  {stack.why}"))
    lines += [f"  {terminal.one_line(line)}".rstrip() for line in stack.stack.splitlines()]
    return [*lines, ""]


def _fitting(head: str, command: str) -> str:
    """A command line may be longer than what it is about: of its paths the ends are kept, which name the program and
    the script. `-o json` has all of it."""
    width = max(terminal.width(), 80)
    words = terminal.one_line(command).split(" ") if command else []
    line = " ".join([f"{head}:", *words]) if words else head
    for place, word in enumerate(words):
        if len(line) > width and word.count("/") > 1 and not word.startswith("-"):
            words[place] = "…/" + word.rstrip("/").rpartition("/")[2]
            line = " ".join([f"{head}:", *words])
    return line if len(line) <= width else line[: width - 2] + " …"
