"""Receiving files of a run from a host that does not share this disk: each whole and verified or not at all. What has
come of a file stays under a name of its own, and the next attempt goes on from there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import HoldfastError, HostError
from holdfast.hosts.client import Client
from holdfast.hosts.connection import PIECE, Connection, Push
from holdfast.hosts.replies import Streaming
from holdfast.whole_files import move, set_executable
from holdfast.workbench.following.parts import PartialFile, parts_folder
from holdfast.workbench.reach import events, pulse

PARTS = ".incoming"
"""Folder of a run at home in which files lie while they arrive."""
TOGETHER = 1000
"""Files that are asked for at once."""
_KINDS = ("piece", "packed", "whole", "failed")
_OF_THIS_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY)


class FarRun(NamedTuple):
    """A run as its host knows it. `has_ended`: nothing writes to its files any more; `host` is for people."""

    project_id: str
    run_id: str
    has_ended: bool
    host: str = "its machine"

    def fields(self) -> dict[str, Any]:
        return {"project": self.project_id, "run": self.run_id, "ended": self.has_ended}


class WantedFile(NamedTuple):
    """`path` is below the run's folder over there; `size` as its host listed it, for progress. What stands in the way
    of `destination` below `root` is a copy of ours and makes room."""

    path: str
    destination: Path
    size: int
    root: Path


class Receiver:
    """Files of one run over one connection. `other` takes what is pushed meanwhile and is none of these files."""

    def __init__(
        self, connection: Connection, run: FarRun, parts: Path, other: Callable[[Push], object] = lambda push: None
    ) -> None:
        self._connection, self._run, self._parts, self._other = connection, run, parts, other
        self.notes: list[str] = []
        """What did not come and never will: it is gone, or cannot be a file here."""
        self.errors: list[str] = []
        """What did not come and may the next time."""
        self._waiting: dict[str, tuple[WantedFile, PartialFile]] = {}
        self._again: list[WantedFile] = []
        self._done = self._total = 0

    def receive(self, files: Sequence[WantedFile]) -> Iterator[events.Fetched]:
        """An event for each piece. Raises HostError when the link is gone, OSError when it cannot be stored here."""
        if not files:
            return
        self._total = sum(each.size for each in files)
        with parts_folder(self._parts) as folder:
            for begin in range(0, len(files), TOGETHER):
                yield from self._receive_some(files[begin : begin + TOGETHER], folder)
            again, self._again = self._again, []
            for begin in range(0, len(again), TOGETHER):
                yield from self._receive_some(again[begin : begin + TOGETHER], folder)
        for each in self._again:
            self.errors.append(f"`{each.path}` arrived damaged twice")

    def _receive_some(self, files: Sequence[WantedFile], folder: Path) -> Iterator[events.Fetched]:
        self._waiting = {each.path: (each, PartialFile(folder / _name(each.path))) for each in files}
        asked = [[path, part.length, part.digest()] for path, (_, part) in self._waiting.items()]
        has_pulse = self._ask_for(asked).alive is not None
        try:
            while self._waiting:
                push = pulse.next_push(self._connection, self._run.host, None, has_pulse)
                if push is not None and self._is_mine(push):
                    yield from self._take(push)
                elif push is not None:
                    self._other(push)
        except HostError:
            raise  # nothing can be said over this connection any more
        except BaseException:
            self._stop()
            raise
        finally:
            for _, part in self._waiting.values():
                part.close()

    def _ask_for(self, files: list[list[Any]]) -> Streaming:
        asked = Client(self._connection).stream(self._run.fields(), files, pulse.PULSE)
        return pulse.wait(asked, self._connection, self._run.host)

    def _is_mine(self, push: Push) -> bool:
        return push.run_id == self._run.run_id and push.kind in _KINDS

    def _take(self, push: Push) -> Iterator[events.Fetched]:
        found = self._waiting.get(push.file)
        if found is None:
            raise HostError(f"The far side sent a file `{push.file}` that was not asked for; nothing was written.")
        wanted, part = found
        if push.kind in ("piece", "packed"):
            part.write(push.offset, push.data if push.kind == "piece" else inflated(push.data))
            done = self._done + part.length
            yield events.Fetched(self._run.run_id, wanted.path, done, max(done, self._total))
            return
        del self._waiting[push.file]
        if push.kind == "failed":
            part.close()
            self._fail(push)
            return
        self._done += part.length
        self._finish(wanted, part, push)
        yield events.Fetched(self._run.run_id, wanted.path, self._done, max(self._done, self._total))

    def _fail(self, push: Push) -> None:
        reason = _json(push)
        text = str(reason.get("message", f"`{push.file}` cannot be read."))
        (self.errors if reason.get("kind") == "storage" else self.notes).append(text.rstrip("."))

    def _finish(self, wanted: WantedFile, part: PartialFile, push: Push) -> None:
        end = _json(push)
        if not part.is_whole(push.offset, end.get("sha256")):
            self._done -= part.length
            part.discard()
            self._again.append(wanted)
            return
        part.close()
        set_executable(part.path, end.get("executable") is True)
        time_of_change = end.get("mtime_ns")
        if isinstance(time_of_change, int) and (self._run.has_ended or end.get("steady") is True):
            with contextlib.suppress(OSError, OverflowError):
                os.utime(part.path, ns=(time_of_change, time_of_change))
        try:
            make_way(wanted.destination, wanted.root)
            _move(part.path, wanted.destination)
        except OSError as error:
            if error.errno not in _OF_THIS_NAME:
                raise
            part.discard()
            self.notes.append(f"`{wanted.path}` cannot be a file here: {error.strerror}")

    def _stop(self) -> None:
        """Let the far side send no more of this, and pass over what is on its way."""
        with contextlib.suppress(HoldfastError):
            self._ask_for([])
            while (push := self._connection.next_push(0)) is not None:
                if not self._is_mine(push):
                    self._other(push)


def _name(path: str) -> str:
    """Of a file's part: short, and possible on every disk."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def make_way(destination: Path, root: Path) -> None:
    """Let a file be made there: folders for it, and nothing else of that name. No link below `root` is passed
    through."""
    import shutil

    place = root
    for part in destination.relative_to(root).parts[:-1]:
        place = place / part
        if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            place.unlink()
        place.mkdir(parents=True, exist_ok=True)
    root.mkdir(parents=True, exist_ok=True)
    if destination.is_dir() and not destination.is_symlink():
        shutil.rmtree(destination)


def _move(source: Path, destination: Path) -> None:
    try:
        move(source, destination)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        import shutil

        shutil.copy2(source, destination)
        source.unlink()


def inflated(data: bytes) -> bytes:
    """What the far side compressed: a piece at most, whatever it claims."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, PIECE)
    except zlib.error as error:
        raise HostError(f"The far side sent a piece that cannot be unpacked: {error}.", "Try again.") from error
    if not stream.eof:
        raise HostError("The far side sent a piece that is cut short, or larger than one may be.", "Try again.")
    return found


def _json(push: Push) -> dict[str, Any]:
    try:
        found = json.loads(push.data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HostError("The far side sent the end of a file in words that this version does not know.")
    return found
