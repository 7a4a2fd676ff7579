"""Which file of packages a submission takes: what was typed, what is found, and what the user says of several."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator

from holdfast.project.configuration import Configuration, load_configuration
from holdfast.project.folder import Project, ensure_state_directory
from holdfast.project.packages_wish import NONE, PackagesWish, split_parts
from holdfast.project.runconfig import CONDA_FILE
from holdfast.shown_text import pasted
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.submit_request import SubmitRequest


def read_configuration(project: Project, request: SubmitRequest, context: Context) -> Configuration:
    """The configuration of a submission. Asks which file of packages is meant, once, where several are found."""
    wish = wish_of(project, request, context)
    spark = from_here(request.spark_file, project, context)
    configuration = load_configuration(project, request.run_configuration, request.target, wish, spark)
    choice = configuration.packages
    is_open = choice is not None and bool(choice.others) and not choice.is_remembered
    if choice is None or not is_open or context.choose is None or context.only_looks or wish.parts:
        return configuration
    among = (choice.written, *choice.others)
    chosen = context.choose(_WHICH, (*among, NONE))
    if chosen is None:
        return configuration
    from holdfast.project.packages_search import remember

    ensure_state_directory(project, context.user_home)
    remember(project, among, chosen)
    return load_configuration(project, request.run_configuration, request.target, wish, spark)


_WHICH = "Several files list packages. Which one should runs use? (none: the target's own Python)"


def wish_of(project: Project, request: SubmitRequest, context: Context) -> PackagesWish:
    folder = folder_of(project, context)
    script = posixpath.normpath(posixpath.join(folder, request.script or ""))
    is_file = bool(request.script) and not script.startswith("..") and os.path.isfile(project.root / script)
    file = from_here(request.conda_file, project, context)
    return PackagesWish(file, request.environment.parts, folder, script if is_file else "")


def folder_of(project: Project, context: Context) -> str:
    """Where the command was typed, relative to the project; empty for its top, and outside of it."""
    found = os.path.relpath(context.directory, project.root).replace(os.sep, "/")
    return "" if found == "." or found.split("/")[0] == ".." else found


def from_here(file: str | None, project: Project, context: Context) -> str | None:
    """A file named on the command line is meant from where that was typed; in the configuration, from the project."""
    if file is None or (file == NONE and not os.path.lexists(context.directory / NONE)):
        return file
    return os.path.relpath(context.directory / file, project.root)


def packages_news(configuration: Configuration, project: Project, of_run: bool, whose: str) -> Iterator[events.Event]:
    """One line about packages that nobody named, or that are not used. `of_run`: another run's are. `whose` is the
    Python where none is built: `your`."""
    target, choice = configuration.target, configuration.packages
    if of_run:
        return
    if choice is None:
        file = configuration.run.conda_dependencies_file
        if os.path.exists(project.root / split_parts(file)[0]):
            what = f"The target `{target.name}` runs on {whose} own Python, so {file} is not used"
            yield events.Noted(f"{what}; to build it: -d {pasted(file)}")
    elif not choice.written:
        yield events.Noted(_NO_PACKAGES)
    elif choice.is_found:
        how = "your choice" if choice.is_remembered else "found"
        others = f"; also here: {', '.join(choice.others)}" if choice.others else ""
        yield events.Noted(f"Packages: {choice.written} ({how}{others}). Another: -d FILE; {whose} own Python: -d none")


_NO_PACKAGES = (
    f"The project lists no packages, so the environment has none. Write a requirements.txt or {CONDA_FILE}, "
    "or name a file: -d FILE"
)
