"""Which data a run reads: what was typed and what its run configuration says, checked before anything is begun."""

from __future__ import annotations

import os

from holdfast.errors import ProjectError, UnknownName
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import replace
from holdfast.project.compute import compute_names
from holdfast.project.configuration import Configuration
from holdfast.project.data_wishes import DataWish, in_force
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.snapshots.file_kinds import is_secret
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
        if wish.place:
            continue
        place = place_of(wish, project, context)
        if not os.path.exists(place):
            raise ProjectError(f"There is no data at `{wish.source}`.", "Correct the path, or download it first.")
        is_own = wish in from_here or os.path.isabs(configuration.run.file or "")  # the account's file is the user's
        if not is_own and _is_private(place, project, context):
            raise ProjectError(
                f"The run configuration names `{wish.source}` as data, which may hold secrets.",
                f"If you mean it, type it: --data {pasted(str(wish))}",
            )
    return replace(configuration, run=replace(configuration.run, data=wishes))


def _is_private(place: str, project: Project, context: Context) -> bool:
    """Whether nobody but the user may say that it is sent: a clone has a run configuration too, and may say where runs
    go. So are all hidden folders, names of secrets, and what holds the user's home directory. Links count as what they
    lead to."""
    home = real_path(context.user_home)
    for path in (os.path.normpath(place), real_path(place)):
        if f"{home}{os.sep}".startswith(f"{path.rstrip(os.sep)}{os.sep}"):
            return True
        tops = (os.fspath(project.root), real_path(project.root), os.fspath(context.user_home), home)
        top = next((each for each in tops if path.startswith(f"{each}{os.sep}")), "")
        if any(part.startswith(".") or is_secret(part) for part in path[len(top) :].split(os.sep)):
            return True
    return False


def _typed(source: str, context: Context) -> str:
    return source if source.startswith("~") else os.path.normpath(os.path.join(context.directory, source))


def place_of(wish: DataWish, project: Project, context: Context) -> str:
    """A path in a run configuration is meant from the project."""
    source = wish.source
    if source == "~" or source.startswith("~/"):
        source = os.fspath(context.user_home) + source[1:]
    return os.path.normpath(os.path.join(project.root, source))
