"""Showing the workbench's events: the script's output to stdout, everything else to stderr; progress in a line of the
terminal, or once a minute in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable
from typing import TextIO

from holdfast.cli import terminal
from holdfast.cli.clock import clock_time
from holdfast.history.verdicts import is_repeated, remedy
from holdfast.model import Reason, Run, UseState, Verdict
from holdfast.project.durations import format_duration, short_duration
from holdfast.project.sizes import format_size
from holdfast.workbench import events

WAITING = "gpus"
"""The phase in which a run waits for GPUs, which may take hours: each of its words is said in a log too."""
PHASES = {
    "environment": "Preparing the environment …",
    "image": "Fetching the image …",
    "container": "",
    WAITING: "",
}
"""What is said once when a phase begins; its own words follow on a terminal, and now and then in a log."""
LOGGED_EVERY = 60.0
"""Seconds between two lines of progress where nobody watches: a build that takes minutes is seen to be alive."""
CAUSES = {
    "cancel": "Canceling",
    "time-limit": "Time limit reached; ending",
    "gpu-idle": "The GPU stayed idle; ending",
    "stopped": "Ending",
}


class Screen:
    """One command's view of a run. `output_to` is where the script's bytes go; None hides them. `age`: seconds since
    the run was submitted."""

    def __init__(self, output_to: TextIO | None, frame: bool = True, age: float = 0.0) -> None:
        self._output = output_to
        self._frame = frame
        self._began = time.monotonic() - max(0.0, age)
        self._status = ""
        self._phase = ""
        self._phase_text = ""
        self._doing = ""
        self._moved = self._logged = time.monotonic()
        self._framed = False
        self._at_line_start = True
        self._lost = ""
        self._noted: set[str] = set()

    def show(self, event: events.Event) -> None:
        match event:
            case events.Warned():
                self._warn(event)
            case events.SnapshotTaken():
                self._line(
                    terminal.detail, f"snapshot {event.digest[:12]}: {event.files} files, {format_size(event.size)}"
                )
            case events.StillWaiting():
                self._tick()
            case events.RunCreated():
                if self._frame:
                    self._line(terminal.notice, f"RunId: {event.run_id}\n")
            case events.PhaseChanged():
                self._change_phase(event)
            case events.EnvironmentReady():
                what = "Built the environment" if event.built else "Environment"
                took = f" in {event.seconds:.1f} s" if event.built else " is there"
                count = f"{event.packages} package{'' if event.packages == 1 else 's'}"
                self._line(terminal.notice if event.built else terminal.detail, f"{what}{took}: {count}.")
            case events.OutputArrived():
                self._write(event.data)
            case events.EndingBegan():
                text = f"{CAUSES.get(event.cause, 'Ending')} the run; it has {format_duration(event.grace)} to finish."
                self._line(terminal.notice, text)
            case events.Noted():
                self._noted.add(event.text)
                self._line(terminal.notice, f"note: {event.text}")
            case events.ConnectionLost():
                self._tell_lost(event)
            case events.Reconnected() | events.RunStarted():
                self._tell_back()
            case events.Ended():
                self._clear()
                self._end(event)
            case _:
                self._show_progress(event)

    def _show_progress(self, event: events.Event) -> None:
        match event:
            case events.SnapshotProgressed():
                self._progress("snapshot", f"taking the snapshot: {event.files} files, {format_size(event.size)} read")
            case events.Sending():
                self._progress("sending", f"sending files: {format_size(event.done)} of {format_size(event.total)}")
            case events.Fetched():
                if event.total > FETCH_WORTH_SHOWING:
                    done, total = format_size(event.done), format_size(event.total)
                    self._progress("fetching", f"fetching outputs: {done} of {total}")
            case events.AskingHosts():
                self._transient(f"asking {', '.join(event.targets)} …")
            case events.Doing():
                self._transient(event.text)
            case _:
                pass

    def finish_line(self) -> None:
        """Leave the terminal at the beginning of a line."""
        self._clear()
        if not self._at_line_start:
            terminal.notice("")
            self._at_line_start = True

    def _tell_lost(self, event: events.ConnectionLost) -> None:
        """One line for each reason: a night without a network is not a page of them."""
        again = f"trying again in {event.next_try:g} s …"
        if event.reason == self._lost:
            reason = terminal.one_line(event.reason)
            room = max(0, terminal.width() - 1 - len(f"connection lost (), {again}"))
            self._transient(f"connection lost ({_at_most(reason, room)}), {again}")
        else:
            self._line(terminal.notice, f"connection lost ({event.reason}), {again}")
        self._lost = event.reason

    def _tell_back(self) -> None:
        if self._lost:
            self._line(terminal.notice, "connected again")
            self._lost = ""

    def _change_phase(self, event: events.PhaseChanged) -> None:
        is_new, self._phase = self._phase != event.name, event.name
        if event.name == "script":
            self._phase_text = ""
            self._clear()
            if self._frame:
                self._open_frame()
        elif event.name == WAITING and not terminal.is_terminal(sys.stderr):
            self._phase_text, text = "", terminal.one_line(event.text)
            self._line(terminal.notice, f"{text[:1].upper()}{text[1:]} …")
        elif event.name in PHASES:
            if is_new and PHASES[event.name]:
                self._line(terminal.notice, PHASES[event.name])
            self._phase_text = event.text
            self._tick()

    def _tick(self) -> None:
        if self._phase_text:
            waited = f" ({time.monotonic() - self._began:.0f} s)"
            text = terminal.one_line(f"  {self._phase_text}")
            room = terminal.width() - 1 - len(waited) if terminal.is_terminal(sys.stderr) else len(text)
            self._progress(self._phase, _at_most(text, room) + waited)

    def _open_frame(self) -> None:
        if not self._framed:
            self._line(terminal.notice, f"Executing user inputs .....\n{terminal.rule()}")
            self._framed = True

    def _write(self, data: bytes) -> None:
        if self._output is None:
            return
        self._clear()
        if self._frame:
            self._open_frame()
        self._output.buffer.write(data)
        self._output.buffer.flush()
        self._at_line_start = data.endswith(b"\n")

    def _end(self, event: events.Ended) -> None:
        self.finish_line()
        if self._frame:
            terminal.notice(f"\nExecution Details\n{terminal.rule()}")
            terminal.notice(f"RunId: {event.run.run_id}")
        summary(event.run, event.missing_file, self._noted, has_output=self._output is not None)

    def _warn(self, event: events.Warned) -> None:
        self.finish_line()
        terminal.warning(event.message)
        terminal.hint(event.remedy)

    def _line(self, write: Callable[[str], None], text: str) -> None:
        self.finish_line()
        write(text)

    def _progress(self, doing: str, text: str) -> None:
        """In a log the time counts from when this began that is being done."""
        if terminal.is_terminal(sys.stderr):
            self._transient(text)
            return
        now = time.monotonic()
        if doing != self._doing or now - self._moved > LOGGED_EVERY:
            self._doing, self._logged = doing, now
        self._moved = now
        if now - self._logged >= LOGGED_EVERY and self._at_line_start:  # a line of the script is not cut in two
            self._logged = now
            self._line(terminal.notice, text)

    def _transient(self, text: str) -> None:
        """A line that the next one replaces; only where somebody watches."""
        if not terminal.is_terminal(sys.stderr):
            return
        shown = terminal.one_line(text)[: terminal.width() - 1]
        if shown == self._status:
            return
        sys.stderr.write("\r\x1b[K" + shown)
        sys.stderr.flush()
        self._status = shown

    def _clear(self) -> None:
        if self._status:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._status = ""


def _at_most(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: max(0, length - 1)]}…"


TOLD_BY_THE_OUTPUT = (Reason.EXIT_CODE, Reason.SIGNAL)
"""Endings of which nothing more can be said than that the cause is in the output."""
FETCH_WORTH_SHOWING = 20 << 20
OTHERS_SHOWN = 8


def summary(run: Run, missing_file: str = "", noted: Collection[str] = (), has_output: bool = False) -> None:
    """How a run ended, in a few lines for people. `noted` are the notes that they have seen; `has_output`: they have
    seen the script's output, and need not be led to it."""
    ending = run.ending
    if ending is None:
        return
    terminal.notice(status_sentence(run))
    if missing_file:
        terminal.hint(missing_file)
    elif not (has_output and ending.reason in TOLD_BY_THE_OUTPUT):
        terminal.hint(run.remedy())
    if run.metrics:
        shown = [f"{name} {value_text(value)}" for name, value in sorted(run.metrics.items())]
        terminal.notice("Metrics: " + ", ".join(shown[:8]) + (" …" if len(shown) > 8 else ""))
    if run.outputs:
        total = sum(each.size for each in run.outputs)
        names = ", ".join(terminal.one_line(each.path) for each in run.outputs[:5])
        more = len(run.outputs) - 5
        names += f" and {more} more" if more > 0 else ""
        where = "on the run's machine" if run.outputs_left else f"in .holdfast/runs/{run.run_id}/"
        terminal.notice(f"Outputs: {names} ({format_size(total)}, {where})")
    if run.ended_processes:
        _list_ended(run)
    if run.other_files_count:
        _list_others(run)
    for note in (each for each in run.notes if each not in noted and not is_repeated(each, run)):
        terminal.notice(f"note: {note}")
    if run.gpu is not None and run.gpu.state is not UseState.NOT_ASKED:
        is_known = any(is_repeated(each, run) for each in noted)
        _show_verdict(run.gpu, "" if is_known else remedy(run))


def status_sentence(run: Run) -> str:
    """Of a run that has ended: what became of it, after how long, and why."""
    took = "" if run.duration is None else f" after {short_duration(run.duration)}"
    return f"Status: {run.status.value}{took}. {run.how_it_ended()}"


def _show_verdict(verdict: Verdict, what_to_do: str) -> None:
    """The last word about a run. Colour repeats what its first words say."""
    claim, colon, why = terminal.one_line(verdict.sentence).partition(":")
    terminal.notice(terminal.style(claim, _STYLES[verdict.state], sys.stderr) + colon + why)
    terminal.hint(what_to_do)


_STYLES = {
    UseState.USED: "good",
    UseState.PARTLY_USED: "warning",
    UseState.NOT_USED: "error",
    UseState.NOT_ASKED: "dim",
    UseState.NOT_AVAILABLE: "error",
    UseState.UNKNOWN: "warning",
}


def _list_ended(run: Run) -> None:
    names = ", ".join(f"{each.name} ({each.pid}, {each.signal})" for each in run.ended_processes[:5])
    more = len(run.ended_processes) - 5
    terminal.notice(f"Processes left behind were ended: {names}" + (f" and {more} more" if more > 0 else ""))


def _list_others(run: Run) -> None:
    names = [terminal.one_line(each.path) for each in run.other_files[:OTHERS_SHOWN]]
    more = run.other_files_count - len(names)
    text = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    terminal.notice(f"Written outside outputs/ (kept until `clean`): {text}")
    terminal.hint(f"holdfast history download -r {run.run_id} -d DIR --artifact {names[0]}")


def value_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return terminal.one_line(str(value))[:60]


def render(event: events.Event) -> None:
    """For commands that read: only what a person must know."""
    match event:
        case events.Warned():
            terminal.warning(event.message)
            terminal.hint(event.remedy)
        case events.HostSilent():
            if event.needs_login:
                terminal.warning(f"{event.target}: login needed: holdfast computetarget check {event.target}")
            else:
                terminal.warning(f"{event.target}: unreachable since {clock_time(event.since)} ({event.reason})")
                terminal.hint(event.remedy)
        case events.OutputsWait():
            size = format_size(event.size)
            terminal.notice(f"The outputs of {event.run_id} ({size}) wait on {event.target}.")
            terminal.hint(f"To fetch them: holdfast history download -r {event.run_id} -d DIR")
        case events.Imported():
            lacking = f" (not known there: {', '.join(event.lacking)})" if event.lacking else ""
            terminal.notice(f"Imported {event.run_id}{lacking}.")


def drain(happening: Iterable[events.Event]) -> None:
    """For commands that look before they show: progress where it takes long, and what a person must know."""
    screen = Screen(None, frame=False)
    for event in happening:
        if isinstance(event, (events.AskingHosts, events.Fetched)):
            screen.show(event)
        else:
            screen.finish_line()
            render(event)
    screen.finish_line()
