"""The run that a command is about: here already, or brought from the target that `-t` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.here import current_project
from holdfast.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from holdfast.project.folder import Project
    from holdfast.workbench.following.follower import Follower
    from holdfast.workbench.surroundings import Surroundings

ELSEWHERE = "If it was submitted elsewhere, name the compute target that it is on: -t NAME"


def find_run(project: Project, run: str, target: str | None, around: Surroundings) -> Follower:
    from holdfast.workbench.records.runs import follower_of

    run_id = find_id(project, run, target, around)
    return follower_of(current_project(around), run_id, around)  # importing may have given the project its id


def only_going_on(project: Project, around: Surroundings) -> str:
    """The one run that has not ended: what is meant where none is named."""
    going_on = _going_on(project)
    if len(going_on) > 1:  # some may have ended since somebody asked
        _ask(project, going_on, around)
        going_on = _going_on(project)
    if len(going_on) == 1:
        return going_on[0]
    if not going_on:
        raise UsageError("No run of this project is going on.", "All of them: holdfast history list")
    shown = "\n".join(f"holdfast cancel -r {run_id}" for run_id in going_on[-5:])
    raise UsageError(f"{len(going_on)} runs have not ended; which one is meant?", shown)


def _going_on(project: Project) -> list[str]:
    """As far as is known here."""
    from holdfast.history.folder import RunFolders
    from holdfast.history.index import Index
    from holdfast.history.records import read_run

    folders = RunFolders(project.state_directory)
    unfinished = [run_id for run_id, _ in Index(project.state_directory).unfinished()]
    return [run_id for run_id in unfinished if read_run(folders, run_id).ending is None]


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
