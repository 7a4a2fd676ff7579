"""The run that a command is about: here already, or brought from the target that `-t` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.here import current_project
from holdfast.errors import UnknownName

if TYPE_CHECKING:
    from holdfast.project.folder import Project
    from holdfast.workbench.following.follower import Follower
    from holdfast.workbench.surroundings import Surroundings

ELSEWHERE = "If it was submitted elsewhere, name the compute target that it is on: -t NAME"


def find_run(project: Project, run: str, target: str | None, around: Surroundings) -> Follower:
    from holdfast.workbench.records.runs import follower_of

    run_id = find_id(project, run, target, around)
    return follower_of(current_project(around), run_id, around)  # importing may have given the project its id


def asked_about(project: Project, run: str, target: str | None, around: Surroundings) -> Follower:
    """The run, as new as its host lets it be."""
    from holdfast.cli.events import drain
    from holdfast.workbench.records.refresh import Looking, refresh

    follower = find_run(project, run, target, around)
    drain(refresh(follower.project, around, Looking(only=frozenset((follower.run_id,)))))
    return follower


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
