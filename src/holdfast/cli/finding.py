"""The run that a command is about: here already, or brought from the target that `-t` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.here import current_project
from holdfast.cli.terminal import one_line
from holdfast.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from holdfast.model import Run
    from holdfast.project.folder import Project
    from holdfast.workbench.following.follower import Follower
    from holdfast.workbench.surroundings import Surroundings

ELSEWHERE = "If it was submitted elsewhere, name the compute target that it is on: -t NAME"
SHOWN = 5
"""Runs that are offered where none was named."""


def find_run(project: Project, run: str, target: str | None, around: Surroundings) -> Follower:
    from holdfast.workbench.records.runs import follower_of

    run_id = find_id(project, run, target, around)
    return follower_of(current_project(around), run_id, around)  # importing may have given the project its id


def only_going_on(project: Project, around: Surroundings) -> str:
    """The one run that has not ended: what is meant where none is named."""
    going_on = _going_on(project)
    if len(going_on) > 1:  # some may have ended since somebody asked
        _ask(project, [each.run_id for each in going_on], around)
        going_on = _going_on(project)
    if len(going_on) == 1:
        return going_on[0].run_id
    if not going_on:
        hint = f"All of them: holdfast history list\n{_given_up(project, around)}"
        raise UsageError("No run of this project is going on.", hint.strip())
    raise UsageError(f"{len(going_on)} runs have not ended; which one is meant?", _commands(going_on, around))


def script_and_target(run: Run) -> str:
    """What a person knows a run by: `train.py on gpu1`."""
    return one_line(f"{run.submission.script_name or 'a preparation'} on {run.submission.target}")


def _going_on(project: Project) -> list[Run]:
    """As far as is known here."""
    from holdfast.history.folder import RunFolders
    from holdfast.history.index import Index
    from holdfast.history.records import read_run

    folders = RunFolders(project.state_directory)
    unfinished = [read_run(folders, run_id) for run_id, _ in Index(project.state_directory).unfinished()]
    return [run for run in unfinished if run.ending is None]


def _given_up(project: Project, around: Surroundings) -> str:
    """Runs that may go on all the same, on machines that could not be asked."""
    from holdfast.history.folder import RunFolders
    from holdfast.history.index import Index
    from holdfast.history.records import read_run

    folders = RunFolders(project.state_directory)
    found = [read_run(folders, run_id) for run_id, _ in Index(project.state_directory).abandoned()]
    if not found:
        return ""
    count, machine = ("1 run was", "its machine") if len(found) == 1 else (f"{len(found)} runs were", "their machines")
    return f"{count} given up; to ask {machine} again, and end what goes on there:\n{_commands(found, around)}"


def _commands(runs: Sequence[Run], around: Surroundings) -> str:
    """One for each of the newest; at the end of its line, where it can be copied for any shell."""
    from holdfast.project.durations import short_duration

    lines = []
    for run in runs[-SHOWN:]:
        age = short_duration(max(0.0, around.now() - run.submission.created))
        lines.append(f"{script_and_target(run)}, submitted {age} ago: holdfast cancel -r {run.run_id}")
    return "\n".join(lines)


def asked_about(project: Project, run: str, target: str | None, around: Surroundings) -> Follower:
    """The run, as new as its host lets it be."""
    follower = find_run(project, run, target, around)
    _ask(follower.project, [follower.run_id], around)
    return follower


def _ask(project: Project, run_ids: list[str], around: Surroundings) -> None:
    from holdfast.cli.events import drain
    from holdfast.workbench.records.refresh import Looking, refresh

    drain(refresh(project, around, Looking(only=frozenset(run_ids))))


def find_id(project: Project, run: str, target: str | None, around: Surroundings) -> str:
    from holdfast.history.folder import RunFolders

    folders = RunFolders(project.state_directory)
    try:
        return folders.resolve(run)
    except UnknownName as error:
        if target is None:
            error.hint = f"{error.hint}\n{ELSEWHERE}".strip()
            raise
    from holdfast.cli.events import drain
    from holdfast.workbench.records.importing import import_run

    drain(import_run(project, run, target, around))
    return folders.resolve(run)
