"""All that goes out to people: notices, warnings, hints and errors on stderr, data on stdout.

Every text passes through here, line by line, and is made harmless on the way: names, notes and messages come from
others. Colours are added after that, and only repeat what a word says (`warning:`). A script's own bytes are passed on
as they are.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

import click

from holdfast.errors import UsageError
from holdfast.presenting.lines import Level, Line, Role
from holdfast.shown_text import one_line, pasted

_STYLES = {"error": "1;31", "warning": "1;33", "hint": "36", "dim": "2", "bold": "1", "good": "32"}
_ROLES = {Role.GOOD: "good", Role.DOUBTFUL: "warning", Role.BAD: "error", Role.ACTIVE: "bold", Role.QUIET: "dim"}


class Styled(NamedTuple):
    """Text as `error`, `warning`, `hint`, `dim`, `bold` or `good`; plain where colour is not shown. `keeps_tabs`: they
    are the indentation of code."""

    text: str
    style: str
    keeps_tabs: bool = False


class Switches:
    """What `--verbose`, `--debug` and `--project` set. One per invocation."""

    def __init__(self, verbose: bool = False, debug: bool = False) -> None:
        self.verbose, self.debug = verbose, debug
        self.project: str | None = None


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
            data(line.text)
        case Level.DETAIL:
            detail(line.text)
        case Level.WARNING:
            warning(line.text)
        case Level.ERROR:
            error(line.text, line.mark.text if line.mark else "error")
        case _:
            _tell(*([Styled(line.mark.text, _ROLES[line.mark.role])] if line.mark else []), line.text)
    notices(line.more)
    hint(line.remedy)


def data(text: object) -> None:
    """A line of what was asked for, on stdout."""
    write(sys.stdout, str(text))
    sys.stdout.flush()


def notice(text: str) -> None:
    """Something worth knowing."""
    _tell(text)


def notices(lines: Iterable[str]) -> None:
    """A page of such lines."""
    for line in lines:
        _tell(line)


def detail(text: str) -> None:
    """Shown only with `--verbose`."""
    if switches().verbose:
        _tell(Styled(text, "dim"))


def warning(text: str) -> None:
    _tell(Styled("warning:", "warning"), " ", text)


def error(text: str, kind: str = "error") -> None:
    _tell(Styled(f"{kind}:", "error"), " ", text)


def hint(text: str) -> None:
    """What to do now, indented below the line that it belongs to; each line of `text` is one."""
    for line in about_same_project(text, switches()).split("\n") if text else ():
        _tell("  ", Styled(line, "hint"))


def about_same_project(text: str, given: Switches) -> str:
    """With `--project` as it was typed, in those commands of `text` that are about a project."""
    if given.project is None:
        return text
    named = f" --project {pasted(given.project)}"
    return re.sub(_ABOUT_PROJECTS, lambda found: found[0] + named, text)


_ABOUT_PROJECTS = (
    r"\bholdfast (?:submit|status|logs|cancel|(?:experiment|history|asset|runconfiguration|computetarget|data) [a-z]+"
    r"|project (?:restore|trust))\b(?!.{0,40}--project)"
)


def can_ask() -> bool:
    """Whether a person sees a question and can answer it."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def agreed(question: str, refusal: str, otherwise: str = "Nothing was done.") -> bool:
    """Whether the person at the terminal says yes; `otherwise` is said if not. Where there is none it raises
    UsageError: `refusal` says why."""
    if not is_terminal(sys.stdin):
        raise UsageError(refusal, "In a script: --yes")
    if click.confirm(one_line(question), default=False, err=True):
        return True
    notice(otherwise)
    return False


def end_of_line() -> None:
    """Leaves the line on which the terminal shows `^C`."""
    if is_terminal(sys.stderr):
        _tell("")


def ask(question: str) -> str:
    """What is typed in answer, with its line break; empty at the end of input."""
    sys.stderr.write(f"{one_line(question)} ")
    sys.stderr.flush()
    return sys.stdin.readline()


def ask_hidden(question: str) -> str:
    """One line, not echoed."""
    import getpass

    return getpass.getpass(f"{one_line(question)} ", stream=sys.stderr)


def clear_line() -> None:
    """Takes back a line of progress."""
    sys.stderr.write("\r\x1b[K")


def rule(character: str = "=") -> str:
    """A line across the terminal; never wider than a page."""
    return character * min(width(), 80)


def width() -> int:
    """Columns to write in: `COLUMNS`, or the terminal's, or 80."""
    import shutil

    return max(20, shutil.get_terminal_size((80, 24)).columns)


def write(stream: TextIO, *parts: str | Styled) -> None:
    """One line: its parts made harmless, and coloured where they are to be and the stream shows it."""
    is_coloured = shows_colour(stream)
    stream.write("".join(_painted(each, is_coloured) for each in parts) + "\n")


def write_as_it_is(stream: TextIO, text: str) -> None:
    """Text that needs no more care: a document that is harmless, a page that `write` made, a script of our own."""
    stream.write(text)


def pass_on(stream: TextIO, data: bytes) -> None:
    """A script's output or a file of its run, byte by byte, as `cat` and `ssh` show them."""
    stream.buffer.write(data)


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


def _tell(*parts: str | Styled) -> None:
    with _even_if_full():
        sys.stdout.flush()  # so that both streams read in order when they end up in one place
    with _even_if_full():
        write(sys.stderr, *parts)
        sys.stderr.flush()


def _painted(part: str | Styled, is_coloured: bool) -> str:
    if isinstance(part, str):
        return one_line(part)
    text = "\t".join(map(one_line, part.text.split("\t"))) if part.keeps_tabs else one_line(part.text)
    return f"\x1b[{_STYLES[part.style]}m{text}\x1b[0m" if text and part.style and is_coloured else text


@contextlib.contextmanager
def _even_if_full() -> Iterator[None]:
    """Messages that a full disk does not take must not end the command. Lost data does, at its end."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        pass
