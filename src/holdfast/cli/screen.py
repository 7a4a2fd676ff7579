"""Shows what happens: the script's output on stdout, words on stderr; progress in one line of the terminal, or once a
minute in a log."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, TypeVar

from holdfast.cli import terminal
from holdfast.frozen import replace
from holdfast.history import journal_fold as journals
from holdfast.presenting.event_lines import PHASES, WAITING, lines
from holdfast.presenting.lines import Level, Line, at_most
from holdfast.presenting.run_words import ending_lines
from holdfast.shown_text import one_line
from holdfast.workbench.reach import events

LOGGED_EVERY = 60.0
"""Seconds between two lines of progress in a log, which show that a long build is alive."""
EVERY = 1.0
"""Seconds after which a person wonders."""
READ = (
    events.Warned,
    events.ReadingMuch,
    events.HostSilent,
    events.OutputsWait,
    events.Imported,
    events.AskingHosts,
    events.Fetched,
)
"""Events that commands which read show: what a person must know, and which machine is waited for."""

T = TypeVar("T")


class Screen:
    """One command's view of what happens. `output_to` takes the script's bytes; None hides them. `age`: seconds since
    the run was submitted. Only events of the types in `only` are shown."""

    def __init__(
        self, output_to: TextIO | None = None, frame: bool = False, age: float = 0.0, only: tuple[type, ...] = (object,)
    ) -> None:
        self._output = output_to
        self._frame = frame
        self._only = only
        self._began = time.monotonic() - max(0.0, age)
        self._status = terminal.StatusLine()
        self._phase = ""
        self._phase_text = ""
        self._doing = ""
        self._moved = self._logged = time.monotonic()
        self._framed = False
        self._at_line_start = True
        self._lost = ""
        self._noted: set[str] = set()

    def show(self, event: events.Event) -> None:
        if not isinstance(event, self._only):
            return
        match event:
            case events.OutputArrived():
                self._write(event.data)
            case events.StillWaiting():
                self._tick()
            case events.RunCreated():
                if self._frame:
                    self._say(replace(lines(event, 0.0)[0], more=("",)))
            case events.Recorded(event=journals.PhaseBegan() | journals.Queued()):
                self._change_phase(lines(event, 0.0)[0])
            case events.Recorded(event=journals.ScriptStarted()):
                self._start_script()
            case events.ConnectionLost():
                self._tell_lost(event)
            case events.Reconnected() | events.RunStarted():
                self._tell_back()
                if isinstance(event, events.RunStarted) and not self._frame:  # else its progress is shown
                    self._say_all(lines(event, 0.0))
            case events.Ended():
                self._end(event)
            case _:
                noted = event.event if isinstance(event, events.Recorded) else event
                if isinstance(noted, (events.Noted, journals.JournalNote)):
                    self._noted.add(noted.text)
                self._say_all(lines(event, time.time()))

    def finish_line(self) -> None:
        """Leave the terminal at the beginning of a line."""
        self._status.clear()
        if not self._at_line_start:
            terminal.notice("")
            self._at_line_start = True

    def _say_all(self, said: list[Line]) -> None:
        for line in said:
            self._say(line)

    def _say(self, line: Line) -> None:
        if line.level is Level.PASSING:
            self._status.show(line.text)
        elif line.level is Level.PROGRESS:
            self._progress(line.doing, line.text)
        else:
            self.finish_line()
            terminal.show(line)

    def _tell_lost(self, event: events.ConnectionLost) -> None:
        """One line for each reason: a night without a network does not fill a page."""
        if event.reason == self._lost:
            about = len(lines(replace(event, reason=""), 0.0)[0].text)
            reason = at_most(one_line(event.reason), max(0, terminal.width() - 1 - about))
            self._status.show(lines(replace(event, reason=reason), 0.0)[0].text)
        else:
            self._say(lines(event, 0.0)[0])
        self._lost = event.reason

    def _tell_back(self) -> None:
        if self._lost:
            self._say(lines(events.Reconnected("", ""), 0.0)[0])
            self._lost = ""

    def _start_script(self) -> None:
        self._phase = self._phase_text = ""
        self._status.clear()
        if self._frame:
            self._open_frame()

    def _change_phase(self, phase: Line) -> None:
        is_new, self._phase = self._phase != phase.doing, phase.doing
        if phase.doing in WAITING and not terminal.is_terminal(sys.stderr):
            self._phase_text, text = "", phase.text
            self._say(Line(f"{text[:1].upper()}{text[1:]} …"))
        elif phase.doing in PHASES:
            if is_new and PHASES[phase.doing]:
                self._say(Line(PHASES[phase.doing]))
            self._phase_text = phase.text
            self._tick()

    def _tick(self) -> None:
        if self._phase_text:
            waited = f" ({time.monotonic() - self._began:.0f} s)"
            text = one_line(f"  {self._phase_text}")
            room = terminal.width() - 1 - len(waited) if terminal.is_terminal(sys.stderr) else len(text)
            self._progress(self._phase, at_most(text, room) + waited)

    def _open_frame(self) -> None:
        if not self._framed:
            self._say(Line("Executing user inputs .....", more=(terminal.rule(),)))
            self._framed = True

    def _write(self, data: bytes) -> None:
        if self._output is None:
            return
        self._status.clear()
        if self._frame:
            self._open_frame()
        terminal.pass_on(self._output, data)
        self._output.buffer.flush()
        self._at_line_start = data.endswith(b"\n")

    def _end(self, event: events.Ended) -> None:
        self.finish_line()
        if self._frame:
            terminal.notices(("", "Execution Details", terminal.rule(), f"RunId: {event.run.run_id}"))
        for line in ending_lines(event.run, event.missing_file, self._noted, self._output is not None):
            terminal.show(line)

    def _progress(self, doing: str, text: str) -> None:
        """In a log the minute counts from the beginning of what is being done."""
        if terminal.is_terminal(sys.stderr):
            self._status.show(text)
            return
        now = time.monotonic()
        if doing != self._doing or now - self._moved > LOGGED_EVERY:
            self._doing, self._logged = doing, now
        self._moved = now
        if now - self._logged >= LOGGED_EVERY and self._at_line_start:  # a line of the script is not cut in two
            self._logged = now
            self._say(Line(text))


def drain(happening: Iterable[events.Event]) -> None:
    """Show what matters of events, for commands that then show a result."""
    screen = Screen(only=READ)
    for event in happening:
        screen.show(event)
    screen.finish_line()


def show_until(happening: Iterable[Any], last: type[T]) -> T:
    """Show each event as it comes; the one that ends it all is returned."""
    screen, ended = Screen(), None
    try:
        for event in happening:
            if isinstance(event, last):
                ended = event
            else:
                screen.show(event)
    finally:
        screen.finish_line()
    if ended is None:
        raise AssertionError("it ended without its last event")
    return ended


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Shows `text` and the seconds while the block lasts, on a terminal only."""
    if not terminal.is_terminal(sys.stderr):
        yield
        return
    done = threading.Event()
    ticking = threading.Thread(target=_tick, args=(text, done), daemon=True)
    ticking.start()
    try:
        yield
    finally:
        done.set()
        ticking.join()


def _tick(text: str, done: threading.Event) -> None:
    began, status = time.monotonic(), terminal.StatusLine()
    while not done.wait(EVERY):
        status.show(f"{text} ({time.monotonic() - began:.0f} s)")
    status.clear()
