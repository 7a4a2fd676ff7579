"""Commands that look at machines: `check`, `computetarget check`, `environment check` and `computetarget gpus`, once or
repeatedly."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TextIO

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import any_project, current_context, current_project, read_target
from holdfast.cli.options import configuration_options, named_target
from holdfast.cli.output_format import CliCommand, Output, output_options, page_options
from holdfast.cli.screen import show_until, working
from holdfast.cli.tables import draw_page
from holdfast.errors import ExitCode, HostError
from holdfast.hosts.machine_report import GpuInUse, GpuInventory
from holdfast.presenting.environment_page import checked_as_dict, checked_text, fixed_text, remark_line
from holdfast.presenting.machine_page import as_dict, rows, user_rows, users_document
from holdfast.workbench.environments import suitability
from holdfast.workbench.machines import usability
from holdfast.workbench.machines.attach import TargetCheck, check
from holdfast.workbench.machines.usability import check_this_machine

EVERY = 2.0
"""Seconds between two looks."""


@click.command("check", cls=CliCommand)
@named_target
@page_options
def check_command(name: str, output: Output) -> None:
    """Look at a compute target again, as `attach` did, and write nothing.

    Connects, shows what the machine has, and proves that runs outlive the connection; of a target with containers it
    tries one as runs have it, if the image is there, and shows those of ours that are left. Ends with 245 when runs
    would not work there.
    """
    context = current_context()
    project = any_project(context)
    read_target(project, name)
    checked = show_until(check(project, name, context), TargetCheck)
    stops = next((each for each in checked.findings if each.stops_runs), None)
    if output.query is not None or output.format not in (None, "table"):
        output.show(as_dict(checked.facts, checked.findings, checked.engine))
    else:
        shown = [each for each in checked.findings if each is not stops]  # that one is the error
        draw_page(rows(checked.facts, shown, checked.engine), sys.stdout)
    if stops is not None:
        raise HostError(stops.message, stops.remedy)
    terminal.notice(f"Runs will work on `{name}`{', if it can fetch the image' if checked.lacks_image else ''}.")


@click.command("check", cls=CliCommand)
@configuration_options()
@click.option("--fix", is_flag=True, help="Write the replacements into the files; comments stay.")
@click.option(
    "--gpu", is_flag=True, help="Runs are to use a GPU. [default: if the machine has one, or the configuration asks]"
)
@output_options
def check_environment_command(
    run_configuration: str | None, target: str | None, conda_file: str | None, fix: bool, gpu: bool, output: Output
) -> int:
    """Look for what will not work: names that are gone, wheels for another system, builds that do not fit the GPU.

    Looks at the file of packages, and at what is installed on the target: in the environment that the file has there if
    it is built, or in your own Python where that is used. Ends with 241 when there are errors.
    """
    context = current_context()
    question = suitability.EnvironmentCheckRequest(run_configuration, target, conda_file, fix, gpu)
    with working("looking at the environment …"):
        checked = suitability.check(current_project(context), question, context)
    if output.query is not None or output.chosen_format() != "table":
        output.show(checked_as_dict(checked))
    else:
        for change in checked.fixed:
            terminal.notice(fixed_text(change))
        for remark in checked.remarks:
            line = remark_line(remark)
            for each in (line.text, *(f"    {part}" for part in line.remedy.split("\n") if part)):
                terminal.data(each)
        terminal.notice(checked_text(checked))
    if checked.unreachable is not None:
        terminal.warning(f"What is installed was not looked at: {checked.unreachable.message}")
        terminal.hint(checked.unreachable.hint)
    if checked.has_errors:
        return ExitCode.CONFIGURATION
    return checked.unreachable.exit_code if isinstance(checked.unreachable, HostError) else 0


@click.command("gpus", cls=CliCommand)
@named_target
@click.option("--watch", "again", is_flag=True, help="Look again every 2 seconds, until Ctrl-C.")
@page_options
def gpus_command(name: str, again: bool, output: Output) -> None:
    """Show who uses the GPUs of a machine: your runs, other people's, and processes that are no run's.

    A GPU that a run has leased (`submit --gpus`) is not given to another run there; those that wait are
    listed in their order, with their runs. Asks the machine over one connection. `-o tsv` has a line for each GPU:
    number, UUID, name, state, whose run and user, per cent busy, bytes used and in all, degrees, watts, processes.
    """
    context = current_context()
    found = read_target(any_project(context), name)
    is_on_screen = _is_page(output) and terminal.is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    try:
        with contextlib.closing(usability.watch_gpus(found, context)) as looks:
            if not again:
                with working(f"asking {found.name} …"):
                    look = next(looks)
                _show(look, output, sys.stdout)
            elif is_on_screen:
                _watch_on_screen(_paced(looks, found.name))
            else:
                _watch_in_blocks(_paced(looks, found.name), output)
    except EndedBySignal as ended:
        ended.die()


def _is_page(output: Output) -> bool:
    return output.query is None and output.format in (None, "table")


def _show(look: GpuInventory, output: Output, stream: TextIO) -> None:
    if _is_page(output):
        draw_page(user_rows(look), stream)
    elif output.format == "tsv" and output.query is None:
        output.show([_flat(each) for each in look.devices], stream=stream)
    else:
        output.show(users_document(look), stream=stream)


def _flat(device: GpuInUse) -> dict[str, Any]:
    """One row: names and numbers only. A device that is split has a lease for each part."""
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


def _watch_in_blocks(looks: Iterator[GpuInventory], output: Output) -> None:
    """One after the other, for a file or a pipe."""
    with contextlib.suppress(KeyboardInterrupt):
        for look in looks:
            if _is_page(output):
                terminal.write(sys.stdout, _time("%Y-%m-%d %H:%M:%S", look))
            _show(look, output, sys.stdout)
            if _is_page(output):
                terminal.write(sys.stdout)
            sys.stdout.flush()


def _watch_on_screen(looks: Iterator[GpuInventory]) -> None:
    shown = ""
    with contextlib.suppress(KeyboardInterrupt), OtherScreen(sys.stdout) as screen:
        for look in looks:
            page = _Page(sys.stdout)
            draw_page(user_rows(look), page)
            shown = page.getvalue()
            screen.show(f"{_time('%H:%M:%S', look)}, every {EVERY:g} s; Ctrl-C ends it", shown)
    terminal.write_as_it_is(sys.stdout, shown)  # the last page stays and can be copied from


class _Page(io.StringIO):
    """Collects a page for a terminal, so that it can be shown at once."""

    def __init__(self, terminal_stream: TextIO) -> None:
        super().__init__()
        self._terminal = terminal_stream

    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # of a file in memory it is None
        return getattr(self._terminal, "encoding", None) or "utf-8"


def _time(form: str, look: GpuInventory) -> str:
    """By the machine's clock."""
    return "time unknown" if look.time is None else time.strftime(form, time.localtime(look.time))


def _paced(looks: Iterator[GpuInventory], name: str) -> Iterator[GpuInventory]:
    """Looks every `EVERY` seconds. Connecting, before the first one, may take a while."""
    began = time.monotonic()
    with working(f"asking {name} …"):
        look = next(looks, None)
    while look is not None:
        yield look
        time.sleep(max(0.0, began + EVERY - time.monotonic()))
        began = time.monotonic()
        look = next(looks, None)


@click.command("check", cls=CliCommand, has_project=False)
@output_options
def here_command(output: Output) -> None:
    """Look at this machine: system, Pythons, disk, Docker, GPUs, and what is wrong with them.

    Needs no project. A GPU driver that hangs is given up after ten seconds.
    """
    with working("looking at this machine; a driver that hangs is given up after ten seconds …"):
        checked = check_this_machine(current_context())
    if output.query is None and output.chosen_format() == "table":
        draw_page(rows(checked.facts, checked.findings, checked.engine), sys.stdout)
    else:
        output.show(as_dict(checked.facts, checked.findings, checked.engine))


Handler = Callable[[int, FrameType | None], None]

BEGIN, END = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""The alternate screen without a cursor, and back."""


class EndedBySignal(BaseException):
    """A signal is to end the command: after cleaning up, it dies of that signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def die(self) -> None:
        signal.signal(self.number, signal.SIG_DFL)
        signal.raise_signal(self.number)


class OtherScreen:
    """The terminal's alternate screen, from the first page until the context ends. Inside it SIGTERM and SIGHUP raise
    EndedBySignal; Ctrl-Z works as usual."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""
        self._handlers = contextlib.ExitStack()

    def __enter__(self) -> OtherScreen:
        ends: dict[str, Handler] = {"SIGTERM": _end, "SIGHUP": _end}
        answers = {**ends, "SIGTSTP": self._stop, "SIGCONT": self._go_on}
        for name, answer in answers.items():
            number = getattr(signal, name, None)  # Windows has fewer
            before = None if number is None else signal.getsignal(number)
            if number is None or before in (None, signal.SIG_IGN):  # `nohup`
                continue
            signal.signal(number, answer)
            self._handlers.callback(signal.signal, number, before)
        return self

    def __exit__(self, *_: object) -> None:
        with self._handlers:
            if self._shown:
                with contextlib.suppress(OSError, ValueError):  # a closed window takes nothing
                    terminal.write_as_it_is(self._stream, END)
                    self._stream.flush()

    def show(self, title: str, page: str) -> None:
        """Overwrites the last page line by line, so that nothing flickers. Says how many lines do not fit."""
        lines = "".join(f"{line}\x1b[K\r\n" for line in _fitting(title, page.splitlines()))
        begin, self._shown = "" if self._shown else BEGIN, f"\x1b[H{lines}\x1b[J"
        terminal.write_as_it_is(self._stream, begin + self._shown)
        self._stream.flush()

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self._shown:
            self._write(END)
        before = signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        signal.signal(number, before)  # continued
        self._go_on(number, None)

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        """Meanwhile the terminal may have shown something else."""
        if self._shown:
            self._write(BEGIN + self._shown)

    def _write(self, text: str) -> None:
        """Not by the stream: a signal may come while that is writing."""
        with contextlib.suppress(OSError, ValueError):
            data = text.encode(self._stream.encoding or "utf-8", "backslashreplace")
            while data:
                data = data[os.write(self._stream.fileno(), data) :]


def _end(number: int, _frame: FrameType | None) -> None:
    raise EndedBySignal(number)


def _fitting(title: str, lines: list[str]) -> Iterator[str]:
    """Cut to the window: a line that the terminal wraps would push the first ones out."""
    columns, height = shutil.get_terminal_size((80, 24))
    room = max(1, height - 2)
    if len(lines) > room:
        lines = [*lines[: room - 1], f"… {len(lines) - room + 1} more lines: make the window higher"]
    yield from (_cut(line, columns) for line in [title, *lines])


def _cut(line: str, columns: int) -> str:
    """Colours have no width."""
    kept, used = "", 0
    for part in _COLOURS.split(line):
        shown = part if part.startswith("\x1b") else part[: columns - used]
        used += 0 if part.startswith("\x1b") else len(shown)
        kept += shown
    return kept


_COLOURS = re.compile(r"(\x1b\[[\d;]*m)")
