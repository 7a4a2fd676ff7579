"""What the workbench's events say, as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.history import journal_fold as journals
from holdfast.presenting.lines import Level, Line, clock_time, counted
from holdfast.presenting.run_words import ending_lines, queued_words
from holdfast.project.quantities import format_duration, format_size
from holdfast.shown_text import pasted
from holdfast.workbench.reach import events

QUEUED, GPUS = "queued", "gpus"
WAITING = (QUEUED, GPUS)
"""Phases in which a run waits for its engine or for GPUs, perhaps for hours: a log gets all their words."""
PHASES = {
    "environment": "Preparing the environment …",
    "image": "Fetching the image …",
    "container": "",
    GPUS: "",
    QUEUED: "",
}
"""What is said once when a phase begins; progress follows."""
CAUSES = {
    "cancel": "Canceling",
    "time-limit": "Time limit reached; ending",
    "gpu-idle": "The GPU stayed idle; ending",
    "stopped": "Ending",
}
FETCH_WORTH_SHOWING = 20 << 20


def lines(event: events.Event, now: float) -> list[Line]:
    """Empty for an event without words. `now`: seconds since 1970, for times of day."""
    if isinstance(event, events.HostSilent):
        return [_host_silent(event, now)]
    happened = event.event if isinstance(event, events.Recorded) else event
    found = WORDS[type(happened)](happened)
    return [found] if isinstance(found, Line) else list(found)


def _snapshot_progressed(event: events.SnapshotProgressed) -> Line:
    text = f"taking the snapshot: {event.files} files, {format_size(event.size)} read"
    return Line(text, Level.PROGRESS, doing="snapshot")


def _reading_much(event: events.ReadingMuch) -> Line:
    tree = event.tree
    parts = []
    for each in tree.largest:
        parts.append(f"{each.path} ({format_size(each.bytes) if tree.is_large else f'{each.files:,} files'})")
    text = f"Reading {tree.files:,} files, {format_size(tree.bytes)}, of {event.root}; most of it: {', '.join(parts)}."
    return Line(text, remedy=f"To ship less: --project DIR, or lines in .amlignore, such as {tree.line}")


def _environment_used(event: journals.EnvironmentUsed) -> Iterable[Line]:
    """Nothing for the user's own Python."""
    count = counted(len(event.packages), "package")
    if event.id and event.built:
        yield Line(f"Built the environment in {event.seconds:.1f} s: {count}.")
    elif event.id:
        yield Line(f"Environment is there: {count}.", Level.DETAIL)


def _run_started(event: events.RunStarted) -> Iterable[Line]:
    if event.queued is not None:
        yield Line(f"The run is {queued_words(event.queued)}")


def _ending_began(event: journals.EndingBegan) -> Line:
    return Line(f"{CAUSES.get(event.cause, 'Ending')} the run; it has {format_duration(event.grace)} to finish.")


def _sending(event: events.Sending) -> Line:
    text = f"sending files: {format_size(event.done)} of {format_size(event.total)}"
    return Line(text, Level.PROGRESS, doing="sending")


def _fetched(event: events.Fetched) -> Iterable[Line]:
    if event.total > FETCH_WORTH_SHOWING:
        text = f"fetching outputs: {format_size(event.done)} of {format_size(event.total)}"
        yield Line(text, Level.PROGRESS, doing="fetching")


def _port_opened(event: events.PortOpened) -> Iterable[Line]:
    yield Line(f"http://127.0.0.1:{event.near_port}", Level.DATA)
    other = "" if event.near_port == event.port else f" ({event.port} is taken here)"
    yield Line(f"leads to port {event.port} of {event.host}{other}. Ctrl-C ends it.")


def _removed(event: events.Removed) -> Line:
    if event.kept:
        return Line(f"kept {event.name}: {event.kept}")
    return Line(f"removed {event.name} ({format_size(event.size)})")


def _host_silent(event: events.HostSilent, now: float) -> Line:
    if event.needs_login:
        return Line(f"{event.target}: login needed: holdfast computetarget check {pasted(event.target)}", Level.WARNING)
    text = f"{event.target}: unreachable since {clock_time(event.since, now)} ({event.reason})"
    return Line(text, Level.WARNING, event.remedy)


def _outputs_wait(event: events.OutputsWait) -> Line:
    text = f"The outputs of {event.run_id} ({format_size(event.size)}) wait on {event.target}."
    return Line(text, remedy=f"To fetch them: holdfast history download -r {pasted(event.run_id)} -d DIR")


def _key_shown(event: events.KeyShown) -> Iterable[Line]:
    yield Line("Append this line to ~/.ssh/authorized_keys over there:")
    yield Line(event.line, Level.DATA)
    yield Line("In one command, over there:", remedy=event.command)


def _nothing(_: object) -> Iterable[Line]:
    return ()


WORDS: Mapping[type[events.Event | journals.JournalEvent], Callable[[Any], Line | Iterable[Line]]] = {
    events.Warned: lambda event: Line(event.message, Level.WARNING, event.remedy),
    events.SnapshotProgressed: _snapshot_progressed,
    events.ReadingMuch: _reading_much,
    events.StillWaiting: _nothing,
    events.SnapshotTaken: lambda event: Line(
        f"snapshot {event.digest[:12]}: {event.files} files, {format_size(event.size)}", Level.DETAIL
    ),
    events.Planned: _nothing,  # its words are `plan_page`
    events.RunCreated: lambda event: Line(f"RunId: {event.run_id}"),
    events.RunStarted: _run_started,
    events.OutputArrived: _nothing,  # its bytes are shown as they are
    events.EndAsked: _nothing,
    events.Noted: lambda event: Line(f"note: {event.text}"),
    events.ConnectionLost: lambda event: Line(
        f"connection lost ({event.reason}), trying again in {event.next_try:g} s …"
    ),
    events.Reconnected: lambda _: Line("connected again"),
    events.Sending: _sending,
    events.Fetched: _fetched,
    events.PortOpened: _port_opened,
    events.Ended: lambda event: ending_lines(event.run, event.missing_file),
    events.Removed: _removed,
    events.AskingHosts: lambda event: Line(f"asking {', '.join(event.targets)} …", Level.PASSING),
    events.RunChanged: _nothing,
    events.OutputsWait: _outputs_wait,
    events.Imported: lambda event: Line(f"Imported {event.run_id}."),
    events.Doing: lambda event: Line(event.text, Level.PASSING),
    events.Done: lambda event: Line(event.text),
    events.KeyShown: _key_shown,
    journals.Created: _nothing,
    journals.PhaseBegan: lambda event: Line(event.text, Level.PROGRESS, doing=event.name),
    journals.Queued: lambda event: Line(queued_words(event.text), Level.PROGRESS, doing=QUEUED),
    journals.EnvironmentUsed: _environment_used,
    journals.ContainerUsed: _nothing,
    journals.ScriptStarted: lambda _: Line("running the script", Level.PROGRESS, doing="script"),
    journals.EndingBegan: _ending_began,
    journals.ScriptExited: _nothing,
    journals.ProcessesEnded: _nothing,  # this and what follows is said when the run has ended
    journals.FilesListed: _nothing,
    journals.JournalNote: lambda event: Line(f"note: {event.text}"),
    journals.GpusJudged: _nothing,
    journals.RunEnded: _nothing,
}
