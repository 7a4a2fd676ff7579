"""The run that a command is about: here already, or imported from the target that `-t` names.

Modules that talk with hosts are imported when one is asked: most runs that are looked at have ended and are at home.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli import terminal
from holdfast.cli.command_context import current_context, current_project
from holdfast.errors import HoldfastError, UnknownName, UsageError
from holdfast.history.index import Index
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.model import Run
from holdfast.presenting.run_words import script_and_target
from holdfast.project.folder import Project
from holdfast.project.quantities import short_duration
from holdfast.shown_text import pasted
from holdfast.workbench.reach.context import Context

if TYPE_CHECKING:
    from holdfast.workbench.following.session import Session

ELSEWHERE = "If it was submitted elsewhere, name the compute target that it is on: -t NAME"
SHOWN = 5
"""Runs to suggest if none was named."""


def find_run(project: Project, run: str, target: str | None, context: Context) -> Session:
    from holdfast.workbench.following.session import session_of

    run_id = _find_id(project, run, target, context)
    return session_of(_identified(project, context), run_id, context)


def _identified(project: Project, context: Context) -> Project:
    """Importing a run may have given the project its id."""
    return project if project.id else current_project(context)


def only_going_on(project: Project, context: Context) -> str:
    """The only run that has not ended: what is meant if none is named."""
    going_on = _going_on(project)
    if len(going_on) > 1:  # some may have ended since
        _ask(project, context, frozenset(each.run_id for each in going_on))
        going_on = _going_on(project)
    if len(going_on) == 1:
        return going_on[0].run_id
    if not going_on:
        hint = f"All of them: holdfast history list\n{_given_up(project, context)}"
        raise UsageError("No run of this project is going on.", hint.strip())
    raise UsageError(f"{len(going_on)} runs have not ended; which one is meant?", _commands(going_on, context))


def _going_on(project: Project) -> list[Run]:
    """Runs that have not ended, as far as is known here."""
    folders = RunFolders(project.state_directory)
    unfinished = [read_run(folders, run_id) for run_id, _ in Index(project.state_directory).unfinished()]
    return [run for run in unfinished if run.ending is None]


def _given_up(project: Project, context: Context) -> str:
    """Runs that were given up because their machines could not be asked: they may still be going on."""
    folders = RunFolders(project.state_directory)
    found = [read_run(folders, run_id) for run_id, _ in Index(project.state_directory).abandoned()]
    if not found:
        return ""
    count, machine = ("1 run was", "its machine") if len(found) == 1 else (f"{len(found)} runs were", "their machines")
    return f"{count} given up; to ask {machine} again, and end what goes on there:\n{_commands(found, context)}"


def _commands(runs: Sequence[Run], context: Context) -> str:
    """One line for each of the newest; the command stands at its end, where it can be copied."""
    lines = []
    for run in runs[-SHOWN:]:
        age = short_duration(max(0.0, context.now() - run.submission.created))
        lines.append(f"{script_and_target(run)}, submitted {age} ago: holdfast cancel -r {pasted(run.run_id)}")
    return "\n".join(lines)


def asked_about(project: Project, run: str, target: str | None, context: Context) -> Session:
    """The run, after asking its host."""
    session = find_run(project, run, target, context)
    _ask(session.project, context, frozenset([session.run_id]))
    return session


def _find_id(project: Project, run: str, target: str | None, context: Context) -> str:
    folders = RunFolders(project.state_directory)
    try:
        return folders.resolve(run)
    except UnknownName as error:
        if target is None:
            place = _place_of(run, project, context)
            error.hint = place or f"{error.hint}\n{ELSEWHERE}".strip()
            raise
    from holdfast.cli.screen import drain
    from holdfast.workbench.records.import_runs import import_run

    drain(import_run(project, run, target, context))
    return folders.resolve(run)


def _place_of(run: str, project: Project, context: Context) -> str:
    """The remedy where another project of this account has a run of this name; empty for none."""
    from holdfast.project.known_projects import known_projects

    others: list[Project] = []
    with contextlib.suppress(HoldfastError):  # records that are not to be believed: the run is unknown all the same
        others = [each for each in known_projects(context.home) if each.root != project.root and run != "last"]
    for each in others:
        with contextlib.suppress(HoldfastError):
            if RunFolders(each.state_directory).resolve(run):
                return f"It is a run of another project. Add: --project {pasted(str(each.root))}"
    return ""


def up_to_date(project: Project, *runs: str, target: str | None = None, whole: bool = False) -> list[str]:
    """The ids of these runs. If one is not at home yet, its host is asked first; `whole`: outputs are fetched whatever
    their size."""
    context = current_context()
    found = [_find_id(project, each, target, context) for each in runs]
    folders = RunFolders(project.state_directory)
    away = frozenset(each for each in found if not folders.is_collected(each))
    if away:
        ask_hosts(_identified(project, context), away, away if whole else frozenset())
    return found


def ask_hosts(project: Project, only: frozenset[str] | None = None, whole: frozenset[str] = frozenset()) -> None:
    """Ask the hosts about unfinished runs; if they do not answer, warn."""
    try:
        _ask(project, current_context(), only, whole)
    except (HoldfastError, OSError) as error:
        text: Any = error.message if isinstance(error, HoldfastError) else error
        terminal.warning(f"unfinished runs are shown as they were last known: {text}")


def _ask(project: Project, context: Context, only: frozenset[str] | None, whole: frozenset[str] = frozenset()) -> None:
    from holdfast.cli.screen import drain
    from holdfast.workbench.records import refresh

    drain(refresh.refresh(project, context, refresh.Looking(only, whole)))
