"""Fetching files of a run that are not at home: what the script wrote outside `outputs/`, and outputs that were left on
the host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.errors import FarSideError, ProjectError, StateError, StorageError
from holdfast.history.index import Index
from holdfast.hosts.client import Client
from holdfast.project.folder import Project
from holdfast.workbench.following.follower import follower_of
from holdfast.workbench.following.outputs import OUTPUTS, Collector, cannot_store, checked, mark_collected
from holdfast.workbench.following.transfer import PARTS, FarRun, Receiver, WantedFile
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context

Fetch = Callable[[str, Path], None]
"""Path as `history info` lists it, relative to the script's working directory, and where to put it."""


@contextlib.contextmanager
def fetching(project: Project, run_id: str, context: Context) -> Iterator[Fetch]:
    """Fetch files of a run one by one, over one connection, which is made for the first."""
    follower = follower_of(project, run_id, context)
    host, parts = follower.product.host, follower.folder / PARTS
    far = FarRun(follower.submission.project_id, follower.run_id, follower.read().status.is_final, host.name)

    def fetch(path: str, destination: Path) -> None:
        name = checked(os.path.normpath(path).replace(os.sep, "/"))
        try:
            if host.is_here:
                Client(follower.connection()).link(far.fields(), f"work/{name}", os.fspath(destination))
            else:
                receiver = Receiver(follower.connection(), far, parts)
                for _ in receiver.receive([WantedFile(f"work/{name}", destination, 0, destination.parent)]):
                    pass
                _require_arrived(receiver, path, follower.run_id)
        except FarSideError as error:
            if error.kind != "not-found":
                raise
            raise _gone(path, follower.run_id) from error

    try:
        yield fetch
    finally:
        follower.disconnect()


def bring_outputs_home(project: Project, run_id: str, context: Context) -> Iterator[events.Event]:
    """Outputs that were left on the host come home as those of any run do. A repeat changes nothing."""
    follower = follower_of(project, run_id, context)
    if not follower.folders.outputs_are_left(run_id):
        return
    with follower.writing() as mine:
        if not mine:
            raise StateError(f"Another process is fetching the outputs of `{run_id}`.", "Wait for it, then try again.")
        host = follower.product.host
        far = FarRun(follower.submission.project_id, run_id, True, host.name)
        collector = Collector(follower.connection(), host.is_here, far, follower.folder)
        try:
            yield from collector.bring((OUTPUTS,))
        except OSError as error:
            raise cannot_store(f"{follower.folder}: {error.strerror}", run_id) from error
        if collector.errors:
            raise cannot_store("; ".join(collector.errors[:5]), run_id)
        mark_collected(follower.folder, collector.notes, outputs_left=False)
        Index(project.state_directory).renew(run_id)
        for note in collector.notes:
            yield events.Noted(note, run_id)


def _require_arrived(receiver: Receiver, path: str, run_id: str) -> None:
    if receiver.errors:
        raise StorageError(f"`{path}` could not be fetched: {receiver.errors[0]}.", "Try again.")
    if receiver.notes:
        raise _gone(path, run_id)


def _gone(path: str, run_id: str) -> ProjectError:
    return ProjectError(
        f"The run `{run_id}` has no file `{path}` any more, here or on its machine.",
        f"What it has: holdfast history info -r {run_id}",
    )
