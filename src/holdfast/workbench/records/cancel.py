"""Ending a run on request: ask, then watch until it is really over. And giving up a run whose machine is gone for good:
what its host wrote stays as it came, a file beside it says that the run is not waited for any more, and the host's word
counts again as soon as it is heard."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.errors import ConfigurationError, FarSideError, HostError, StateError
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client
from holdfast.model import Run
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.mirror import stopped_writer
from holdfast.workbench.following.session import Session, session_of
from holdfast.workbench.reach import events
from holdfast.workbench.reach.contacts import short_reason
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.link import Patience


def cancel(
    project: Project, run: str, context: Context, grace: float | None = None, wait: bool = True
) -> Iterator[events.Event]:
    """SIGTERM, the grace time, then the end of every process of the run. A run that has ended is left as it is. Needs
    nothing of the client that submitted or follows the run: it makes a connection of its own."""
    session = session_of(project, run, context)
    if session.read().status.is_final:
        yield from Follower(session).follow()
        return
    try:
        yield from _ask_to_end(session, grace)
    except FarSideError as error:
        if error.kind != "not-found":
            raise
        yield from Follower(session).follow()  # settles a run that its host does not know
        return
    yield events.EndAsked(session.run_id)
    if wait and stopped_writer(session.folder) is None:
        yield from Follower(session).follow()
    elif wait:
        yield events.Warned(
            "The run was asked to end. How it ends is not seen here: the process that copies it is stopped.",
            f"Continue that one, or look later: holdfast status -r {pasted(session.run_id)}",
        )


class UnreachableRun(NamedTuple):
    """A run whose host could not be asked just now; `why` in a few words, `message` in a sentence."""

    run_id: str
    why: str
    message: str


def try_to_ask(project: Project, run: str, context: Context) -> UnreachableRun:
    """Raises StateError where there is nothing to give up: the host answers, or it is known how the run ended."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    _require_unknown(read_run(folders, run_id))
    try:
        session = session_of(project, run_id, context)
    except ConfigurationError as error:  # the target was detached, or its file is broken
        return UnreachableRun(run_id, "its compute target cannot be read", error.message)
    host = session.host.name
    try:
        found = _ask_about(session)
    except FarSideError:
        raise
    except HostError as error:
        return UnreachableRun(run_id, short_reason(error, host), error.message)
    _require_unknown(found)
    raise StateError(
        f"{host} answers, so {run_id} is not given up.",
        f"Where it is: holdfast status -r {pasted(run_id)}\nTo end it: holdfast cancel -r {pasted(run_id)}",
    )


def abandon(project: Project, unreachable: UnreachableRun, context: Context) -> Run:
    """From now on the run is asked about only on request, and nothing waits for it."""
    folders = RunFolders(project.state_directory)
    folders.write_abandoned(unreachable.run_id, unreachable.why, context.now())
    return read_run(folders, unreachable.run_id)


def _ask_to_end(session: Session, grace: float | None) -> Iterator[events.Event]:
    """Over a new connection, and over another one if that broke: asking twice changes nothing."""
    gone = f"If the machine is gone for good: holdfast cancel -r {pasted(session.run_id)} --abandon"
    patience = Patience(1, f"The run was not asked to end; try again later.\n{gone}")
    while True:
        try:
            with session.host.connect() as connection:
                Client(connection).cancel(session.submission.project_id, session.run_id, grace)
            return
        except HostError as error:
            pause = patience.pause(error)
            yield events.Doing(f"{error.message}; trying once more …")
            time.sleep(pause)


def _ask_about(session: Session) -> Run:
    """Returns the run when its host has answered; raises HostError where it did not, ElsewhereError where what answers
    is not where the run was started."""
    with session.writing() as mine:
        if not mine:
            raise StateError(
                f"Another process is following {session.run_id}.", "End that one first; it tries the machine again."
            )
        if session.heard().missing:
            session.settle_missing()  # a host that does not have it any more has answered, too
        return session.read()


def _require_unknown(run: Run) -> None:
    if run.status.is_final and run.ending is not None:
        raise StateError(
            f"{run.run_id} is not given up: it has ended already. {run.how_it_ended()}",
            f"All of it: holdfast history info -r {pasted(run.run_id)}",
        )
