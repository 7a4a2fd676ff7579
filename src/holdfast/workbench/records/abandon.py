"""Giving up a run whose machine is gone for good. What its host wrote stays as it came; that it is not waited for any
more is a file of its own beside that, and the host's word counts again as soon as it is heard."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import (
    ConfigurationError,
    FarSideError,
    HostError,
    StateError,
)
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.model import Run
from holdfast.project.folder import Project
from holdfast.workbench.following.session import Session, session_of
from holdfast.workbench.reach.contacts import short_reason
from holdfast.workbench.reach.context import Context


class Unasked(NamedTuple):
    """A run whose host could not be asked just now; `why` in a few words, `message` in a sentence."""

    run_id: str
    why: str
    message: str


def try_to_ask(project: Project, run: str, context: Context) -> Unasked:
    """Raises StateError where there is nothing to give up: the host answers, or it is known how the run ended."""
    run_id = RunFolders(project.state_directory).resolve(run)
    _require_unknown(read_run(RunFolders(project.state_directory), run_id))
    try:
        session = session_of(project, run_id, context)
    except ConfigurationError as error:  # the target was detached, or its file is broken
        return Unasked(run_id, "its compute target cannot be read", error.message)
    host = session.host.name
    try:
        found = _ask(session)
    except FarSideError:
        raise
    except HostError as error:
        return Unasked(run_id, short_reason(error, host), error.message)
    _require_unknown(found)
    raise StateError(
        f"{host} answers, so {run_id} is not given up.",
        f"Where it is: holdfast status -r {run_id}\nTo end it: holdfast cancel -r {run_id}",
    )


def abandon(project: Project, unasked: Unasked, context: Context) -> Run:
    """From now on the run is asked about only on request, and nothing waits for it."""
    folders = RunFolders(project.state_directory)
    folders.write_abandoned(unasked.run_id, unasked.why, context.now())
    return read_run(folders, unasked.run_id)


def _ask(session: Session) -> Run:
    """Returns the run when its host has answered; raises HostError where it did not, ElsewhereError where what answers
    is not where the run was started."""
    with session.writing() as mine:
        if not mine:
            raise StateError(
                f"Another process is following {session.run_id}.", "End that one first; it tries the machine again."
            )
        if session.heard().missing:
            session.settle_missing()  # a host that says that it has it no more has answered, too
        return session.read()


def _require_unknown(run: Run) -> None:
    if run.status.is_final and run.ending is not None:
        raise StateError(
            f"{run.run_id} is not given up: it has ended already. {run.how_it_ended()}",
            f"All of it: holdfast history info -r {run.run_id}",
        )
