"""What a command is about: where it was typed and by whom, its project, its compute target.

A connection may begin with this before anything else is loaded (`early_connection`), so little is imported on top.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.questions import asker, chooser
from holdfast.errors import ConfigurationError, ProjectError, UnknownName
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import replace
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context, project_of, read_context

if TYPE_CHECKING:
    from holdfast.project.compute import ComputeTarget


def current_context() -> Context:
    """As the workbench reads it, with the person at the terminal, if there is one, to answer questions."""
    return replace(read_context(), ask=asker(), choose=chooser(), named_project=_named_project())


def _named_project() -> Path | None:
    """What `--project` of the command says."""
    terminal = sys.modules.get("holdfast.cli.terminal")  # not loaded yet when a connection is begun early
    named = terminal.switches().project if terminal is not None else None
    return None if named is None else Path(named)


def current_project(context: Context | None = None) -> Project:
    """The project of the folder in which the command was typed. `context`: if it has been read already."""
    return project_of(context or current_context())


def any_project(context: Context) -> Project:
    """The same, for commands about machines: in a folder that can be no project, one without anything."""
    try:
        return project_of(context)
    except ProjectError:
        return Project(context.directory, "", "", True, context.home, context.account)


def read_target(project: Project, wanted: str) -> ComputeTarget:
    """The target as its file has it; warns of problems that do not keep it from being used."""
    from holdfast.cli import terminal
    from holdfast.workbench.machines.target_files import list_targets

    listed = {each.name: each for each in list_targets(project)}
    if wanted not in listed:
        raise UnknownName("compute target", wanted, listed)
    found = listed[wanted]
    if found.target is None:
        raise ConfigurationError(found.problems)
    for problem in found.problems:
        terminal.warning(str(problem))
    return found.target


def tell_if_shipped(project: Project, folder: Path, context: Context) -> None:
    """Warns that the next run takes along what a command copied to `folder`, if that is inside the project and no rule
    keeps it out of snapshots."""
    from holdfast.cli import terminal
    from holdfast.snapshots.ignore import AMLIGNORE, explain
    from holdfast.snapshots.patterns import typed_line

    place, root = Path(real_path(folder)), Path(real_path(project.root))
    if root not in place.parents:
        return
    inside = place.relative_to(root).as_posix()
    if explain(root, f"{inside}/any", context.environment) is None:
        line = typed_line(os.fsencode(inside))
        terminal.hint(f"It is in the project, so runs take it along. To leave it out: `/{line}/` in {AMLIGNORE}")
