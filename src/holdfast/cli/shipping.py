"""Copies that a command made in the project's folder: the next run takes them along, and whoever asked for them may not
think of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli import terminal

if TYPE_CHECKING:
    from holdfast.project.folder import Project
    from holdfast.workbench.surroundings import Surroundings


def tell_if_shipped(project: Project, folder: Path, around: Surroundings) -> None:
    """Says so of a folder inside the project, below its root, that no rule leaves out of snapshots."""
    from holdfast.snapshots.ignore import AMLIGNORE, explain
    from holdfast.snapshots.patterns import literal

    place, root = folder.resolve(), project.root.resolve()
    if root not in place.parents:
        return
    inside = place.relative_to(root).as_posix()
    if explain(root, f"{inside}/any", around.environment) is None:
        line = terminal.one_line(os.fsdecode(literal(os.fsencode(inside))))
        terminal.hint(f"It is in the project, so runs take it along. To leave it out: `/{line}/` in {AMLIGNORE}")
