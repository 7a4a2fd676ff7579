"""Ending a run on request: ask, then watch until it is really over."""

from __future__ import annotations

import time
from collections.abc import Iterator

from holdfast.errors import FarSideError, HostError
from holdfast.hosts.client import Client
from holdfast.project.folder import Project
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.mirror import stopped_writer
from holdfast.workbench.following.session import Session, session_of
from holdfast.workbench.reach import events
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
        yield from _ask(session, grace)
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
            f"Continue that one, or look later: holdfast status -r {session.run_id}",
        )


def _ask(session: Session, grace: float | None) -> Iterator[events.Event]:
    """Over a new connection, and over another one if that broke: to ask twice changes nothing."""
    host = session.host
    gone = f"If the machine is gone for good: holdfast cancel -r {session.run_id} --abandon"
    patience = Patience(1, f"The run was not asked to end; try again later.\n{gone}")
    while True:
        try:
            with host.connect() as connection:
                Client(connection).cancel(session.submission.project_id, session.run_id, grace)
            return
        except HostError as error:
            pause = patience.pause(error)
            yield events.Doing(f"{error.message}; trying once more …")
            time.sleep(pause)
