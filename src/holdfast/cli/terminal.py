"""Words for people, on stderr: notices, warnings, hints, errors. Data goes to stdout, by `output_format`.

Colour only repeats what a word says (`warning:`).
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO

import click

from holdfast.errors import UsageError
from holdfast.presenting.lines import Level, Line, Role, one_line

_STYLES = {"error": "1;31", "warning": "1;33", "hint": "36", "dim": "2", "bold": "1", "good": "32"}
_ROLES = {Role.GOOD: "good", Role.DOUBTFUL: "warning", Role.BAD: "error", Role.ACTIVE: "bold", Role.QUIET: "dim"}


class Switches:
    """What `--verbose` and `--debug` set. One per invocation."""

    def __init__(self, verbose: bool = False, debug: bool = False) -> None:
        self.verbose, self.debug = verbose, debug


def provide_streams() -> None:
    """Put /dev/null where the caller has closed a stream (`2>&-`), before anything is opened: the next file
    would get its number, and what is meant for the terminal would be written into that file."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one
    # Python has None where a stream was closed; these last as long as the process.
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # PYTHONUNBUFFERED: without a buffer Python drops what a write did not take, and does not say so.
        sys.stdout = open(1, "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that is not UTF-8 must not end the command
            stream.reconfigure(errors="backslashreplace")
    if sys.platform == "win32" and (is_terminal(sys.stdout) or is_terminal(sys.stderr)):
        _let_console_take_escapes()


def drop_unwritten() -> None:
    """Drops, at the very end, what a full disk or a closed pipe does not take. Python would try again when it exits,
    complain, and exit with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


class StatusLine:
    """A line that the next one replaces; on a terminal only."""

    def __init__(self) -> None:
        self._shown = ""

    def show(self, text: str) -> None:
        shown = one_line(text)[: width() - 1] if is_terminal(sys.stderr) else ""
        if shown and shown != self._shown:
            self._replace(shown)

    def clear(self) -> None:
        if self._shown:
            self._replace("")

    def _replace(self, text: str) -> None:
        sys.stderr.write("\r\x1b[K" + text)
        sys.stderr.flush()
        self._shown = text


def show(line: Line) -> None:
    """Shows a line that stays, and its remedy."""
    match line.level:
        case Level.DATA:
            click.echo(line.text)
        case Level.DETAIL:
            detail(line.text)
        case Level.WARNING:
            warning(line.text)
        case Level.ERROR:
            error(line.text, line.mark.text if line.mark else "error")
        case _:
            notice((style(line.mark.text, _ROLES[line.mark.role], sys.stderr) if line.mark else "") + line.text)
    hint(line.remedy)


def notice(text: str) -> None:
    """Something worth knowing."""
    _write(text)


def detail(text: str) -> None:
    """Shown only with `--verbose`."""
    if switches().verbose:
        _write(style(text, "dim", sys.stderr))


def warning(text: str) -> None:
    _write(f"{style('warning:', 'warning', sys.stderr)} {text}")


def error(text: str, kind: str = "error") -> None:
    shown = "\n".join(one_line(line) for line in text.split("\n"))
    _write(f"{style(f'{kind}:', 'error', sys.stderr)} {shown}")


def hint(text: str) -> None:
    """What to do now, indented below the line that it belongs to."""
    for line in text.splitlines():
        _write(f"  {style(one_line(line), 'hint', sys.stderr)}")


def agreed(question: str, refusal: str) -> bool:
    """Whether the person at the terminal says yes. Where there is none it raises UsageError: `refusal` says why."""
    if not is_terminal(sys.stdin):
        raise UsageError(refusal, "In a script: --yes")
    if click.confirm(question, default=False, err=True):
        return True
    notice("Nothing was done.")
    return False


def end_of_line() -> None:
    """Leaves the line on which the terminal shows `^C`."""
    if is_terminal(sys.stderr):
        _write("")


def rule(character: str = "=") -> str:
    """A line across the terminal; never wider than a page."""
    return character * min(width(), 80)


def width() -> int:
    """Columns to write in: `COLUMNS`, or the terminal's, or 80."""
    import shutil

    return max(20, shutil.get_terminal_size((80, 24)).columns)


def style(text: str, name: str, stream: TextIO) -> str:
    """`text` as `error`, `warning`, `hint`, `dim`, `bold` or `good`; unchanged where colour is not shown."""
    return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if text and shows_colour(stream) else text


def shows_colour(stream: TextIO) -> bool:
    """True on a terminal that has colours, unless NO_COLOR is set (https://no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"


def is_terminal(stream: TextIO | None) -> bool:
    """`stream` None: it was closed before Python started."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed by the caller
        return False


def switches() -> Switches:
    """The switches of this invocation; all off outside of one."""
    context = click.get_current_context(silent=True)
    found = context.find_root().obj if context else None
    return found if isinstance(found, Switches) else Switches()


def _let_console_take_escapes() -> None:
    """Makes the Windows console understand colours and status lines."""
    if sys.platform == "win32":
        import ctypes

        kernel = ctypes.windll.kernel32
        for number in (-11, -12):  # stdout, stderr
            handle, mode = kernel.GetStdHandle(number), ctypes.c_ulong()
            if kernel.GetConsoleMode(handle, ctypes.byref(mode)):
                kernel.SetConsoleMode(handle, mode.value | 4)  # ENABLE_VIRTUAL_TERMINAL_PROCESSING


def _write(text: str) -> None:
    with _even_if_full():
        sys.stdout.flush()  # so that both streams read in order when they end up in one place
    with _even_if_full():
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


@contextlib.contextmanager
def _even_if_full() -> Iterator[None]:
    """Messages that a full disk does not take must not end the command. Lost data does, at its end."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        pass
