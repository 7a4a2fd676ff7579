"""Where a command was typed: the one way by which commands find their project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.workbench.surroundings import Surroundings, surroundings

if TYPE_CHECKING:
    from holdfast.project.folder import Project


def current_project(around: Surroundings | None = None) -> Project:
    """The project of the folder in which the command was typed; `around` where it has been looked at already."""
    from holdfast.project.folder import find_project

    return find_project((around or surroundings()).directory)
