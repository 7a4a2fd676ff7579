"""The terminal's other screen, for what is shown again and again. However the command ends, and while it is stopped,
the terminal is as it was before."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TextIO

Handler = Callable[[int, FrameType | None], None]

BEGIN, END = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""Another screen, without a cursor, and the old one as it was."""


class Ended(BaseException):
    """Somebody ended the command by a signal: to be answered by dying of it, when all is put away."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def die(self) -> None:
        signal.signal(self.number, signal.SIG_DFL)
        signal.raise_signal(self.number)


class OtherScreen:
    """Appears with the first lines that are shown. A context: leave it, and the old one is back. Inside of it SIGTERM
    and SIGHUP raise Ended; Ctrl-Z works as everywhere."""

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
                with contextlib.suppress(OSError, ValueError):  # a window that was closed takes nothing any more
                    self._stream.write(END)
                    self._stream.flush()

    def show(self, title: str, page: str) -> None:
        """Written over what was there, line by line: nothing flickers. What does not fit is said."""
        lines = "".join(f"{line}\x1b[K\r\n" for line in _fitting(title, page.splitlines()))
        begin, self._shown = "" if self._shown else BEGIN, f"\x1b[H{lines}\x1b[J"
        self._stream.write(begin + self._shown)
        self._stream.flush()

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self._shown:
            self._write(END)
        before = signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        signal.signal(number, before)  # from here on it goes on
        self._go_on(number, None)

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        """Who was stopped does not know what the terminal shows by now."""
        if self._shown:
            self._write(BEGIN + self._shown)

    def _write(self, text: str) -> None:
        """Past the stream: a signal comes at any time, and that may be writing just now."""
        with contextlib.suppress(OSError, ValueError):
            data = text.encode(self._stream.encoding or "utf-8", "backslashreplace")
            while data:
                data = data[os.write(self._stream.fileno(), data) :]


def _end(number: int, _frame: FrameType | None) -> None:
    raise Ended(number)


def _fitting(title: str, lines: list[str]) -> Iterator[str]:
    """A line that is broken by the terminal would push the first ones out of it."""
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
