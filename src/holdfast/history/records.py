"""A run's record: a pure fold of its journal. Never "Completed" unless the journal says so."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.farside.system.folders import walked
from holdfast.farside.system.whole_lines import pieces
from holdfast.frozen import replace
from holdfast.history.journal_fold import (
    ContainerUsed,
    Created,
    EndingBegan,
    EnvironmentUsed,
    FilesListed,
    GpusJudged,
    JournalEvent,
    JournalNote,
    JournalReader,
    PhaseBegan,
    ProcessesEnded,
    Queued,
    RunEnded,
    ScriptExited,
    ScriptStarted,
)
from holdfast.history.run_folder import RunFolders
from holdfast.model import EndedProcess, Ending, Reason, Run, Status, Submission
from holdfast.project.quantities import format_duration
from holdfast.shown_text import pasted
from holdfast.whole_files import storage_error
from holdfast.written_files import ABOVE, FILES, OUTPUTS, FileSize, path_in_project

MOST_KEPT = 1000
"""Notes of a run, and processes that had to be ended."""
_COPIES_NAMED = 20
DIVERGED = ".diverged-"
"""In the name of a copy that was not the beginning of the host's file: kept beside the new one."""


class Folding:
    """A run while its journal is read: any events in any order give one. What grows with the journal is kept apart, and
    only so much of it: a run is copied for each event."""

    def __init__(self, submission: Submission) -> None:
        self._run = Run(submission=submission, status=Status.SUBMITTED)
        self._notes: list[str] = []
        self._ended: list[EndedProcess] = []
        self._more_notes = self._more_ended = 0

    def take(self, event: JournalEvent) -> None:
        if isinstance(event, JournalNote):
            self._note(event.text)
        elif isinstance(event, ProcessesEnded):
            room = MOST_KEPT - len(self._ended)
            self._ended += event.processes[:room]
            self._more_ended += max(0, event.total - len(event.processes[:room]))
        else:
            self._run = _apply(self._run, event)

    def run(self, bad_lines: int, metrics: Mapping[str, Any]) -> Run:
        notes = list(self._notes)
        if self._more_ended:
            count = self._more_ended
            notes.append(f"{count} more {'process was' if count == 1 else 'processes were'} ended.")
        if self._more_notes:
            notes.append(f"{self._more_notes} more notes are in the run's journal.jsonl.")
        if bad_lines:
            lines = "1 line" if bad_lines == 1 else f"{bad_lines} lines"
            notes.append(f"{lines} of the run's journal could not be read.")
        return replace(self._run, notes=tuple(notes), ended_processes=tuple(self._ended), metrics=dict(metrics))

    def _note(self, text: str) -> None:
        if len(self._notes) < MOST_KEPT:
            self._notes.append(text)
        else:
            self._more_notes += 1


def read_run(folders: RunFolders, run_id: str) -> Run:
    """Read the near copies of a run's files and fold them. No journal: a run that was only submitted."""
    from holdfast.history.metrics import final_values  # folding needs nothing of it

    submission = folders.submission(run_id)
    folder = folders.path(run_id)
    folding, reader = Folding(submission), JournalReader()
    try:
        with (folder / "journal.jsonl").open("rb") as source:
            for piece in pieces(source):
                for event in reader.feed(piece):
                    folding.take(event)
    except FileNotFoundError:
        pass  # nothing was heard of it yet
    except OSError as error:
        raise storage_error(error, f"read the journal of run `{run_id}`", folder) from error
    run = folding.run(reader.bad_lines, final_values(folder / "metrics"))
    if not run.outputs and folders.is_collected(run_id):  # the supervisor died before it could list them
        run = replace(run, outputs=_outputs_at_home(folder))
    run = replace(run, clock_offset=folders.clock_offset(run_id), left=folders.left_there(run_id))
    if not run.status.is_final:
        run = _abandoned(run, folders.why_abandoned(run_id))
    if not submission.fetch_outputs and (not folders.is_collected(run_id) or folders.outputs_are_left(run_id)):
        run = replace(run, outputs_left=True)
        fetch = f"holdfast history download -r {pasted(run_id)} -d DIR"
        run = _with_note(run, f"Outputs stay on the run's machine, as asked (--no-outputs). Fetch them: {fetch}")
    for note in folders.notes_at_home(run_id) if run.status.is_final else ():
        run = _with_note(run, note)
    return replace(run, notes=(*run.notes, *_notes_on_copies(_diverged(folder))))


def _notes_on_copies(names: list[str]) -> Iterator[str]:
    for name in names[:_COPIES_NAMED]:
        original = name.partition(DIVERGED)[0]
        yield f"`{original}` on the host differed from the copy here; the old copy is kept as `{name}`."
    if len(names) > _COPIES_NAMED:
        yield f"{len(names) - _COPIES_NAMED} more old copies have `{DIVERGED}` in their names."


def _abandoned(run: Run, why: str | None) -> Run:
    """The run given up here; `why` None: it was not."""
    if why is None:
        return run
    return replace(run, status=Status.ABANDONED, ending=Ending(Reason.ABANDONED, detail=why), phase="")


def _outputs_at_home(folder: Path) -> tuple[FileSize, ...]:
    return tuple(
        FileSize(path_in_project(path.relative_to(folder).as_posix()), path.stat().st_size)
        for top in (OUTPUTS, FILES, ABOVE)
        for path in sorted(Path(place, each) for place, _, names in walked(os.fspath(folder / top)) for each in names)
        if path.is_file() and not path.is_symlink()
    )


def _diverged(folder: Path) -> list[str]:
    names = [
        os.path.relpath(os.path.join(place, name), folder)
        for place in (folder, folder / "metrics")
        for name in _names(place)
        if DIVERGED in name
    ]
    return sorted(names)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _apply(run: Run, event: JournalEvent) -> Run:
    match event:
        case Created():
            return _at_least(run, Status.QUEUED if event.engine else Status.PREPARING)
        case Queued():
            run = _at_least(run, Status.QUEUED)
            return replace(run, phase=event.text) if run.status is Status.QUEUED else run
        case PhaseBegan():
            return replace(_at_least(run, Status.PREPARING), phase=_phase(run, event.text or event.name))
        case EnvironmentUsed():
            built_in = event.seconds if event.built else None
            run = replace(run, environment=event.id or None, python=event.python, built_in=built_in)
            run = replace(run, packages=event.packages)
            return _at_least(run, Status.PREPARING)
        case ContainerUsed():
            run = replace(run, image=event.image_name or None, image_id=event.image or None)
            return replace(_at_least(run, Status.PREPARING), container=event.name or None, has_gpus=event.gpus)
        case ScriptStarted():
            started = event.time if run.started is None else run.started
            return replace(_at_least(run, Status.RUNNING), started=started, phase="")
        case EndingBegan():
            said = f"{_CAUSES.get(event.cause, 'being ended')}: {format_duration(event.grace)} to finish"
            return replace(run, phase=_phase(run, said))
        case ScriptExited():
            return run if run.exited is not None or run.status.is_final else replace(run, exited=event.time)
        case FilesListed():
            return replace(run, outputs=event.outputs, other_files=event.others, other_files_count=event.others_count)
        case GpusJudged():  # by the supervisor, and again by the guardian if the supervisor died before the end
            return run if run.gpu is not None else replace(run, gpu=event.verdict)
        case RunEnded():
            return _with_ending(run, event)
    return run


def _at_least(run: Run, status: Status) -> Run:
    """A run moves forward only: an event that arrives late, or twice, does not take it back."""
    return replace(run, status=status) if _ORDER[status] > _ORDER[run.status] else run


def _phase(run: Run, text: str) -> str:
    return "" if run.status.is_final else text


def _with_ending(run: Run, event: RunEnded) -> Run:
    """The first ending counts: once a run has ended, nothing that is written later can change how."""
    if run.status.is_final:
        return run
    run = replace(run, ended=event.time, phase="")
    reason = _REASONS.get(event.reason)
    if reason is None:
        # A later version's word: not known to be a success, so it is none.
        ending = Ending(Reason.UNKNOWN, event.code, event.signal, f"{event.reason} {event.detail}".strip())
    else:
        ending = Ending(reason, event.code, event.signal, event.detail)
    return replace(run, status=ending.status, ending=ending)


def _with_note(run: Run, note: str) -> Run:
    return replace(run, notes=(*run.notes, note))


_REASONS = {each.value: each for each in Reason if each is not Reason.ABANDONED}
"""What a host may say; only this side abandons runs."""
_CAUSES = {
    "cancel": "being canceled",
    "time-limit": "being ended, time limit reached",
    "gpu-idle": "being ended, GPU idle",
}
_ORDER: Mapping[Status, int] = {
    Status.SUBMITTED: 0,
    Status.QUEUED: 1,
    Status.PREPARING: 2,
    Status.RUNNING: 3,
    Status.COMPLETED: 4,
    Status.FAILED: 4,
    Status.CANCELED: 4,
}
