"""`computetarget gpus`: who uses the GPUs of a machine, once or again and again."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project, surroundings
from holdfast.cli.options import target_names
from holdfast.cli.output import Command, Output, page_options
from holdfast.cli.targets import one_name, read_target
from holdfast.frozen import asdict

if TYPE_CHECKING:
    from holdfast.workbench.machines.gpus import Device, Look

EVERY = 2.0
"""Seconds between two looks."""


@click.command("gpus", cls=Command)
@click.argument("target", required=False, metavar="NAME", shell_complete=target_names)
@click.option("-n", "--name", metavar="NAME", shell_complete=target_names, help="The same as NAME.")
@click.option("--watch", "again", is_flag=True, help="Look again every 2 seconds, until Ctrl-C.")
@page_options
def gpus_command(target: str | None, name: str | None, again: bool, output: Output) -> None:
    """Show who uses the GPUs of a machine: your runs, other people's, and processes that are no run's.

    A GPU that a run has leased (`submit --gpus`) is not given to another run of anybody's there; those that wait are
    listed in their order, with their runs. Asks the machine over one connection. `-o tsv` has a line for each GPU:
    number, UUID, name, state, whose run and user, per cent busy, bytes used and in all, degrees, watts, processes.
    """
    from holdfast.cli.other_screen import Ended
    from holdfast.cli.progress import working
    from holdfast.workbench.machines.gpus import watch

    around = surroundings()
    found = read_target(current_project(around), one_name(target, name))
    is_on_screen = _is_page(output) and terminal.is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    try:
        with contextlib.closing(watch(found, around)) as looks:
            if not again:
                with working(f"asking {found.name} …"):
                    look = next(looks)
                _show(look, output, sys.stdout)
            elif is_on_screen:
                _watch_on_screen(_paced(looks, found.name))
            else:
                _watch_in_blocks(_paced(looks, found.name), output)
    except Ended as ended:
        ended.die()


def as_dict(look: Look) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(asdict(look)))  # queries know lists, and not tuples
    return found


def _is_page(output: Output) -> bool:
    return output.query is None and output.format in (None, "table")


def _show(look: Look, output: Output, stream: TextIO) -> None:
    from holdfast.cli.gpu_users_page import draw

    if _is_page(output):
        draw(look, stream)
    elif output.format == "tsv" and output.query is None:
        output.show([_flat(each) for each in look.devices], stream=stream)
    else:
        output.show(as_dict(look), stream=stream)


def _flat(device: Device) -> dict[str, Any]:
    """A line of a table: names and numbers only. A device that is cut has as many leases as parts."""
    found = [device.lease, *(part.lease for part in device.instances)]
    leases = [each for each in found if each is not None]
    used = {None: "unknown", True: "in use", False: "free"}[device.is_used]
    state = device.state if device.state != "ok" else "leased" if leases else used
    return {
        "number": device.number,
        "uuid": device.uuid,
        "name": device.name,
        "state": state,
        "run": ",".join(dict.fromkeys(each.run for each in leases if each.run)),
        "user": ",".join(dict.fromkeys(each.user for each in leases if each.user)),
        "utilization": device.utilization,
        "memory_used": device.memory_used,
        "memory_total": device.memory_total,
        "temperature": device.temperature,
        "power": device.power,
        "processes": None if device.processes is None else len(device.processes),
    }


def _watch_in_blocks(looks: Iterator[Look], output: Output) -> None:
    """One below the other, for a file or a pipe."""
    with contextlib.suppress(KeyboardInterrupt):
        for look in looks:
            if _is_page(output):
                sys.stdout.write(_time("%Y-%m-%d %H:%M:%S", look) + "\n")
            _show(look, output, sys.stdout)
            if _is_page(output):
                sys.stdout.write("\n")
            sys.stdout.flush()


def _watch_on_screen(looks: Iterator[Look]) -> None:
    from holdfast.cli.gpu_users_page import draw
    from holdfast.cli.other_screen import OtherScreen

    shown = ""
    with contextlib.suppress(KeyboardInterrupt), OtherScreen(sys.stdout) as screen:
        for look in looks:
            page = _Page(sys.stdout)
            draw(look, page)
            shown = page.getvalue()
            screen.show(f"{_time('%H:%M:%S', look)}, every {EVERY:g} s; Ctrl-C ends it", shown)
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


def _time(form: str, look: Look) -> str:
    """By the machine's clock."""
    return "time unknown" if look.time is None else time.strftime(form, time.localtime(look.time))


def _paced(looks: Iterator[Look], name: str) -> Iterator[Look]:
    """For the first one a connection has to be made, which may take a while."""
    from holdfast.cli.progress import working

    began = time.monotonic()
    with working(f"asking {name} …"):
        look = next(looks, None)
    while look is not None:
        yield look
        time.sleep(max(0.0, began + EVERY - time.monotonic()))
        began = time.monotonic()
        look = next(looks, None)
