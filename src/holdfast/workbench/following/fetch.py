"""Fetching files of a run that are not at home: what the script wrote outside `outputs/`, and outputs that were left on
the host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.errors import FarSideError, ProjectError, StateError, StorageError
from holdfast.history.index import Index
from holdfast.project.folder import Project
from holdfast.workbench.following.outputs import OUTPUTS, cannot_store, checked, collector_of, far_run, mark_collected
from holdfast.workbench.following.session import session_of
from holdfast.workbench.following.transfer import PARTS, Receiver, WantedFile
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context

Fetch = Callable[[str, Path], None]
"""Path as `history info` lists it, relative to the script's working directory, and where to put it."""


@contextlib.contextmanager
def fetching(project: Project, run_id: str, context: Context) -> Iterator[Fetch]:
    """Fetch files of a run one by one, over one connection, which is made for the first."""
    session = session_of(project, run_id, context)
    far = far_run(session, session.read().status.is_final)

    def fetch(path: str, destination: Path) -> None:
        name = checked(os.path.normpath(path).replace(os.sep, "/"))
        try:
            if session.host.is_here:
                session.far().link(far.fields(), f"work/{name}", os.fspath(destination))
            else:
                receiver = Receiver(session.connection(), far, session.folder / PARTS)
                for _ in receiver.receive([WantedFile(f"work/{name}", destination, 0, destination.parent)]):
                    pass
                _require_arrived(receiver, path, session.run_id)
        except FarSideError as error:
            if error.kind != "not-found":
                raise
            raise _gone(path, session.run_id) from error

    try:
        yield fetch
    finally:
        session.disconnect()


def bring_outputs_home(project: Project, run_id: str, context: Context) -> Iterator[events.Event]:
    """Bring home outputs that were left on the host, as those of any run. A repeat changes nothing."""
    session = session_of(project, run_id, context)
    if not session.folders.outputs_are_left(run_id):
        return
    with session.writing() as mine:
        if not mine:
            raise StateError(f"Another process is fetching the outputs of `{run_id}`.", "Wait for it, then try again.")
        collector = collector_of(session, has_ended=True)
        try:
            yield from collector.bring((OUTPUTS,))
        except OSError as error:
            raise cannot_store(f"{session.folder}: {error.strerror}", run_id) from error
        if collector.errors:
            raise cannot_store("; ".join(collector.errors[:5]), run_id)
        mark_collected(session.folder, collector.notes, outputs_left=False)
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
