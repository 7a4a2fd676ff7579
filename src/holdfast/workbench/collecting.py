"""Bringing a run's outputs home after its end: each file whole or not at all, what is here already is not fetched
again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import FarSideError, HostError, StorageError
from holdfast.history.folder import COLLECTED
from holdfast.hosts.connection import Connection
from holdfast.model import Reason, Run
from holdfast.workbench import events

_ROOTS = {"work/outputs": "outputs", "uploads": "uploads"}


def collect(
    connect: Callable[[], Connection], is_here: bool, project_id: str, folder: Path, run: Run
) -> Iterator[events.Event]:
    """For the run's one writer. Marks the folder as collected last, so a broken attempt is made again."""
    notes: list[str] = []
    if run.ending is None or run.ending.reason not in (Reason.NOT_STARTED, Reason.LOST):
        fetcher = Fetcher(connect(), is_here, {"project": project_id, "run": run.run_id, "ended": True})
        try:
            for far, near in _ROOTS.items():
                yield from fetcher.fetch_folder(far, folder / near, notes)
        except FarSideError as error:
            if error.kind != "not-found":
                raise
            notes.append(error.message)  # `clean` elsewhere was quicker
        except StorageError as error:
            raise _cannot_store(error.message, run.run_id) from error
        except OSError as error:
            raise _cannot_store(f"{folder}: {error.strerror}", run.run_id) from error
    _mark(folder, notes)
    for note in notes:
        yield events.Noted(note)


class Fetcher:
    """Fetches files of one run over one connection."""

    def __init__(self, connection: Connection, is_here: bool, run: Mapping[str, Any]) -> None:
        """`run` has the keys `project`, `run` and `ended`: a file of a run that may still write to it is copied, not
        linked."""
        self._connection, self._is_here, self._run = connection, is_here, run

    def fetch_folder(self, far: str, near: Path, notes: list[str]) -> Iterator[events.Event]:
        listed = self._list(far, notes)
        total = sum(each.size for each in listed)
        done = 0
        for each in (each for each in listed if each.kind == "f"):
            destination = near / checked(each.path)
            if not destination.exists() or destination.stat().st_size != each.size:
                self.fetch_file(f"{far}/{each.path}", destination)
            done += each.size
            yield events.Fetched(each.path, done, total)
        for each in (each for each in listed if each.kind == "l"):  # last: no file is written through a link
            self._link(near / checked(each.path), each.target, near, notes)

    def fetch_file(self, path: str, destination: Path) -> None:
        """`destination` is there only when it is whole."""
        destination.parent.mkdir(parents=True, exist_ok=True)
        if self._is_here:
            self._connection.request("link", {"path": path, "destination": os.fspath(destination), **self._run})
            return
        part = destination.with_name(f".fetch-{os.getpid()}")
        with part.open("wb") as target:
            while True:
                number = self._connection.send("fetch", {"path": path, "offset": target.tell(), **self._run})
                _, data = self._connection.answer_with_body(number)
                if not data:
                    break
                target.write(data)
        part.rename(destination)

    def _list(self, far: str, notes: list[str]) -> list[FarFile]:
        found: list[FarFile] = []
        while True:
            page = self._connection.request("list", {"root": far, "from": len(found), **self._run})
            if not found:
                notes += page["problems"]
            found += [FarFile(*row) for row in page["files"]]
            if len(found) >= page["total"] or not page["files"]:
                break
        # `holdfast.upload` writes under a name of its own first; a kill can leave one behind.
        return [each for each in found if far != "uploads" or not each.path.startswith(".unfinished-")]

    @staticmethod
    def _link(destination: Path, target: str, near: Path, notes: list[str]) -> None:
        """Links inside the folder come along; one that leaves it would mean something else here."""
        resolved = os.path.normpath(os.path.join(destination.parent, target))
        inside = resolved == os.fspath(near) or resolved.startswith(os.fspath(near) + os.sep)
        if os.path.isabs(target) or not inside:
            notes.append(f"`{destination.relative_to(near)}` is a link to `{target}`, outside the folder: not fetched.")
            return
        destination.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(destination):
            os.symlink(target, destination)


@dataclass(frozen=True)
class FarFile:
    """A file (`f`) or link (`l`) of a run, as its host lists it."""

    path: str
    kind: str
    size: int
    target: str


def checked(path: str) -> str:
    """A path from the far side that stays below the folder it is put into."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or os.path.isabs(path):
        raise HostError(f"The far side names a file `{path}` that leaves the run's folder; nothing was written.")
    return path


def _mark(folder: Path, notes: list[str]) -> None:
    new = folder / (COLLECTED + ".new")
    try:
        new.write_text(json.dumps({"format": 1, "notes": notes}) + "\n")
        new.rename(folder / COLLECTED)
    except OSError as error:
        raise StorageError(f"`{folder}` cannot be written: {error.strerror}.", "Make room there.") from error


def _cannot_store(reason: str, run_id: str) -> StorageError:
    return StorageError(
        f"The outputs of `{run_id}` cannot be brought home: {reason}.",
        f"They are kept on their machine. Make room, then: holdfast logs -r {run_id}",
    )
