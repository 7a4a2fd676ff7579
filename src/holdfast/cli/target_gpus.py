"""`computetarget gpus`: who uses the GPUs of a machine, once or again and again."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project, surroundings
from holdfast.cli.options import target_names
from holdfast.cli.output import Command, Output, output_options
from holdfast.cli.targets import one_name, read_target
from holdfast.frozen import asdict

if TYPE_CHECKING:
    from holdfast.workbench.machines.gpus import Look

EVERY = 2.0
"""Seconds between two looks."""
BEGIN, END = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""Another screen, without a cursor, and the old one as it was."""


@click.command("gpus", cls=Command)
@click.argument("target", required=False, metavar="[NAME]", shell_complete=target_names)
@click.option("-n", "--name", metavar="NAME", shell_complete=target_names, help="The same as NAME.")
@click.option("--watch", "again", is_flag=True, help="Look again every 2 seconds, until Ctrl-C.")
@output_options
def gpus_command(target: str | None, name: str | None, again: bool, output: Output) -> None:
    """Show who uses the GPUs of a machine: your runs, other people's, and processes that are no run's.

    A GPU that a run has leased (`submit --gpus`) is not given to another run of anybody's there; those that wait are
    listed in their order. Asks the machine over one connection. A page in a pipe too, unless -o says otherwise.
    """
    from holdfast.workbench.machines.gpus import watch

    around = surroundings()
    found = read_target(current_project(around), one_name(target, name))
    with contextlib.closing(watch(found, around)) as looks:
        if not again:
            _show(next(looks), output, sys.stdout)
        elif _is_page(output) and terminal.is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb":
            _watch_on_screen(looks)
        else:
            _watch_in_blocks(looks, output)


def as_dict(look: Look) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(asdict(look)))  # queries know lists, and not tuples
    return found


def _is_page(output: Output) -> bool:
    return output.query is None and output.format in (None, "table")


def _show(look: Look, output: Output, stream: TextIO) -> None:
    from holdfast.cli.gpu_users_page import draw

    if _is_page(output):
        draw(look, stream)
    else:
        output.show(as_dict(look), stream=stream)


def _watch_in_blocks(looks: Iterator[Look], output: Output) -> None:
    """One below the other, for a file or a pipe."""
    with contextlib.suppress(KeyboardInterrupt):
        for look in _paced(looks):
            if _is_page(output):
                sys.stdout.write(time.strftime("%Y-%m-%d %H:%M:%S\n", time.localtime(look.time)))
            _show(look, output, sys.stdout)
            if _is_page(output):
                sys.stdout.write("\n")
            sys.stdout.flush()


def _watch_on_screen(looks: Iterator[Look]) -> None:
    from holdfast.cli.gpu_users_page import draw

    shown = ""
    try:
        for look in _paced(looks):
            page = _Page(sys.stdout)
            draw(look, page)
            sys.stdout.write((BEGIN if not shown else "") + _screenful(page.getvalue(), look))
            sys.stdout.flush()
            shown = page.getvalue()
    except KeyboardInterrupt:
        pass
    finally:
        if shown:
            sys.stdout.write(END)
            sys.stdout.flush()
    sys.stdout.write(shown)  # what was seen last stays, where one can copy from it


class _Page(io.StringIO):
    """A page that is written as on the terminal it is for, and shown at once."""

    def __init__(self, terminal_stream: TextIO) -> None:
        super().__init__()
        self._terminal = terminal_stream

    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # of a file in memory it is None
        return getattr(self._terminal, "encoding", None) or "utf-8"


def _screenful(page: str, look: Look) -> str:
    """Written over the one before, line by line: nothing flickers. What does not fit is said."""
    height = shutil.get_terminal_size((80, 24)).lines
    lines = page.splitlines()
    room = max(1, height - 2)
    if len(lines) > room:
        lines = [*lines[: room - 1], f"… {len(lines) - room + 1} more lines: make the window higher"]
    title = f"{time.strftime('%H:%M:%S', time.localtime(look.time))}, every {EVERY:g} s; Ctrl-C ends it"
    return "\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in [title, *lines]) + "\x1b[J"


def _paced(looks: Iterator[Look]) -> Iterator[Look]:
    while True:
        began = time.monotonic()
        look = next(looks, None)
        if look is None:
            return
        yield look
        time.sleep(max(0.0, began + EVERY - time.monotonic()))
