"""Bringing a run's outputs home after its end: each file whole or not at all, what is here already is not fetched
again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.errors import FarSideError, HostError, StorageError
from holdfast.history.folder import COLLECTED
from holdfast.hosts.connection import Connection
from holdfast.model import Reason, Run
from holdfast.workbench import events

_ROOTS = {"work/outputs": "outputs", "uploads": "uploads"}


def is_collected(folder: Path) -> bool:
    return (folder / COLLECTED).exists()


def collect(
    connect: Callable[[], Connection], is_here: bool, project_id: str, folder: Path, run: Run
) -> Iterator[events.Event]:
    """For the run's one writer. Marks the folder as collected last, so a broken attempt is made again."""
    notes: list[str] = []
    if run.ending is not None and run.ending.reason not in (Reason.NOT_STARTED, Reason.LOST):
        fetcher = Fetcher(connect(), is_here, project_id, run.run_id)
        try:
            for far, near in _ROOTS.items():
                yield from fetcher.fetch_folder(far, folder / near, notes)
        except FarSideError as error:
            if error.kind != "not-found":
                raise
            notes.append(error.message)
        except StorageError as error:
            raise _cannot_store(error.message, run.run_id) from error
        except OSError as error:
            raise _cannot_store(f"{folder}: {error.strerror}", run.run_id) from error
    _mark(folder, notes)
    for note in notes:
        yield events.Noted(note)


class Fetcher:
    """Fetches files of one run over one connection."""

    def __init__(self, connection: Connection, is_here: bool, project_id: str, run_id: str) -> None:
        self._connection, self._is_here = connection, is_here
        self._run = {"project": project_id, "run": run_id}

    def fetch_folder(self, far: str, near: Path, notes: list[str]) -> Iterator[events.Event]:
        listed = [each for each in self._connection.request("list", {"root": far, **self._run}) if _is_whole(each[0])]
        files = [(path, size) for path, kind, size, _ in listed if kind == "f"]
        links = [(path, target) for path, kind, _, target in listed if kind == "l"]
        total = sum(size for _, size in files)
        done = 0
        for path, size in files:
            destination = near / checked(path)
            if not destination.exists() or destination.stat().st_size != size:
                self.fetch_file(f"{far}/{path}", destination)
            done += size
            yield events.Fetched(path, done, total)
        for path, target in links:  # last, so that no file is written through a link
            self._link(near / checked(path), target, near, notes)

    def fetch_file(self, path: str, destination: Path) -> None:
        """`destination` is there only when it is whole."""
        destination.parent.mkdir(parents=True, exist_ok=True)
        if self._is_here:
            self._connection.request("link", {"path": path, "destination": os.fspath(destination), **self._run})
            return
        part = destination.with_name(destination.name + ".part")
        with part.open("wb") as target:
            while True:
                number = self._connection.send("fetch", {"path": path, "offset": target.tell(), **self._run})
                _, data = self._connection.answer_with_body(number)
                if not data:
                    break
                target.write(data)
        part.rename(destination)

    @staticmethod
    def _link(destination: Path, target: str, near: Path, notes: list[str]) -> None:
        """Links inside the folder come along; one that leaves it would mean something else here."""
        resolved = os.path.normpath(os.path.join(destination.parent, target))
        if os.path.isabs(target) or not resolved.startswith(os.fspath(near) + os.sep):
            notes.append(f"`{destination.relative_to(near)}` is a link to `{target}`, outside the folder: not fetched.")
            return
        destination.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(destination):
            os.symlink(target, destination)


def checked(path: str) -> str:
    """A path from the far side that stays below the folder it is put into."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or os.path.isabs(path):
        raise HostError(f"The far side names a file `{path}` that leaves the run's folder; nothing was written.")
    return path


def _is_whole(path: str) -> bool:
    """`holdfast.upload` writes under a name of its own first; a kill can leave one behind."""
    return not path.startswith(".unfinished-")


def _mark(folder: Path, notes: list[str]) -> None:
    new = folder / (COLLECTED + ".new")
    new.write_text(json.dumps({"format": 1, "notes": notes}) + "\n")
    new.rename(folder / COLLECTED)


def _cannot_store(reason: str, run_id: str) -> StorageError:
    return StorageError(
        f"The outputs of `{run_id}` cannot be brought home: {reason}.",
        f"They are kept on their machine. Make room, then: holdfast logs -r {run_id}",
    )
