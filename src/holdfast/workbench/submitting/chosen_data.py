"""Which data a run reads: what was typed and what its run configuration says, checked before anything is begun."""

from __future__ import annotations

import os

from holdfast.errors import ProjectError, UnknownName
from holdfast.frozen import replace
from holdfast.project.compute import compute_names
from holdfast.project.configuration import Configuration
from holdfast.project.data_wishes import DataWish, in_force
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.workbench.reach.context import Context


def with_data(
    configuration: Configuration, typed: tuple[DataWish, ...], project: Project, context: Context
) -> Configuration:
    """With what was typed in place of what is written. Raises where a place is wrong, or something is not there."""
    from_here = [each if each.place else replace(each, source=_typed(each.source, context)) for each in typed]
    wishes, target = in_force(from_here, configuration.run.data), configuration.target.name
    for wish in wishes:
        if wish.place and wish.place != target:
            valid = compute_names(project.configuration_folders)
            if wish.place not in valid:
                raise UnknownName("compute target", wish.place, valid)
            raise ProjectError(
                f"The data `{wish.source}` is on {wish.place}, and this run is on {target}.",
                f"Run it there: -t {pasted(wish.place)}",
            )
        if not wish.place and not os.path.exists(place_of(wish, project, context)):
            raise ProjectError(f"The data `{wish.source}` is not there.", "Correct the path, or download it first.")
    return replace(configuration, run=replace(configuration.run, data=wishes))


def _typed(source: str, context: Context) -> str:
    return source if source.startswith("~") else os.path.normpath(os.path.join(context.directory, source))


def place_of(wish: DataWish, project: Project, context: Context) -> str:
    """A path in a run configuration is meant from the project."""
    source = wish.source
    if source == "~" or source.startswith("~/"):
        source = os.fspath(context.user_home) + source[1:]
    return os.path.normpath(os.path.join(project.root, source))
