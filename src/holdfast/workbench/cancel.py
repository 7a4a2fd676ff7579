"""Ending a run on request: ask, then watch until it is really over."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.runs import follower_of
from holdfast.workbench.surroundings import Surroundings


def cancel(
    project: Project, run: str, around: Surroundings, grace: float | None = None, wait: bool = True
) -> Iterator[events.Event]:
    """SIGTERM, the grace time, then the end of every process of the run. A run that has ended is left as it is."""
    follower = follower_of(project, run, around)
    if follower.read().ending is not None:
        yield from follower.follow()
        return
    connection = follower.connection()
    follower.product.engine.cancel(connection, project.id, follower.run_id, grace)
    follower.disconnect()
    if wait:
        yield from follower.follow()
