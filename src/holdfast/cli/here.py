"""Where a command was typed, and by whom: the one way by which commands find their project and their surroundings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.asking import asker
from holdfast.frozen import replace
from holdfast.workbench import surroundings as found
from holdfast.workbench.surroundings import Surroundings

if TYPE_CHECKING:
    from holdfast.project.folder import Project


def surroundings() -> Surroundings:
    """As the workbench sees them, with the person at the terminal to ask if there is one."""
    return replace(found.surroundings(), ask=asker())


def current_project(around: Surroundings | None = None) -> Project:
    """The project of the folder in which the command was typed; `around` where it has been looked at already."""
    from holdfast.project.folder import find_project

    return find_project((around or surroundings()).directory)
