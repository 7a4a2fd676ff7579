"""Receiving files of a run from a host that does not share this disk: each whole and verified or not at all. What has
come of a file stays under a name of its own, and the next attempt continues it, by one process at a time. What the disk
has, not what was sent to it, decides whether a file is whole."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import HoldfastError, HostError
from holdfast.farside.system.folders import remove_folder
from holdfast.hosts.client import Client
from holdfast.hosts.connection import PIECE, Connection, Push
from holdfast.hosts.replies import Streaming
from holdfast.regular_files import open_regular
from holdfast.snapshots.store import CHUNK, digest_of_stream
from holdfast.whole_files import move, set_executable, try_lock
from holdfast.workbench.reach import events, link

PARTS = ".incoming"
"""Folder of a run at home in which files lie while they arrive."""
STALE = 86400.0
"""Seconds after which a process's own folder is taken for one that a killed process left."""
_TOGETHER = 1000
"""Files that are asked for at once."""
_LONGEST = 4000
"""Characters of a reason."""
_BINARY, _NO_LINK = getattr(os, "O_BINARY", 0), getattr(os, "O_NOFOLLOW", 0)
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
    """`path` is below the run's folder on its host; `size` as the host listed it, for progress. What is in the way of
    `destination` below `root` is a copy of ours and is removed."""

    path: str
    destination: Path
    size: int
    root: Path


class Receiver:
    """Files of one run over one connection. `other` takes whatever else is pushed meanwhile."""

    def __init__(
        self, connection: Connection, run: FarRun, parts: Path, other: Callable[[Push], object] = lambda push: None
    ) -> None:
        self._connection, self._run, self._parts, self._other = connection, run, parts, other
        self.notes: list[str] = []
        """What did not come and never will: it is gone, or cannot be a file here."""
        self.refused: list[WantedFile] = []
        """What cannot be a file here."""
        self.errors: list[str] = []
        """What did not come and may the next time."""
        self._waiting: dict[str, tuple[WantedFile, PartialFile]] = {}
        self._again: list[WantedFile] = []
        self._made: set[Path] = set()
        self._done = self._total = 0

    def receive(self, files: Sequence[WantedFile]) -> Iterator[events.Fetched]:
        """An event for each piece. Raises HostError when the link is gone, OSError when it cannot be stored here."""
        if not files:
            return
        self._total = sum(each.size for each in files)
        self._made.clear()
        with _parts_folder(self._parts) as folder:
            for begin in range(0, len(files), _TOGETHER):
                yield from self._receive_some(files[begin : begin + _TOGETHER], folder)
            again, self._again = self._again, []
            for begin in range(0, len(again), _TOGETHER):
                yield from self._receive_some(again[begin : begin + _TOGETHER], folder)
        for each in self._again:
            self.errors.append(f"`{each.path}` arrived damaged twice")

    def _receive_some(self, files: Sequence[WantedFile], folder: Path) -> Iterator[events.Fetched]:
        self._waiting = {each.path: (each, PartialFile(folder / _name(each.path))) for each in files}
        asked = [[path, part.length, part.digest()] for path, (_, part) in self._waiting.items()]
        has_pulse = self._ask_for(asked).alive is not None
        try:
            while self._waiting:
                push = link.next_push(self._connection, self._run.host, None, has_pulse)
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
        asked = Client(self._connection).stream(self._run.fields(), files, link.PULSE)
        return link.wait(asked, self._connection, self._run.host)

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
        said = reason.get("message")
        text = said[:_LONGEST] if isinstance(said, str) else f"`{push.file}` cannot be read."
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
            with contextlib.suppress(OSError, OverflowError, ValueError):
                os.utime(part.path, ns=(time_of_change, time_of_change))
        try:
            make_way(wanted.destination, wanted.root, self._made)
            _move(part.path, wanted.destination)
        except OSError as error:
            if error.errno not in _OF_THIS_NAME:
                raise
            part.discard()
            self.refused.append(wanted)
            self.notes.append(f"`{wanted.path}` cannot be a file here: {error.strerror}")

    def _stop(self) -> None:
        """Tell the far side to send no more of this, and skip what is on its way."""
        with contextlib.suppress(HoldfastError):
            self._ask_for([])
            for _ in range(_TOGETHER):  # not for as long as something comes
                push = self._connection.next_push(0)
                if push is None:
                    return
                if not self._is_mine(push):
                    self._other(push)


def _name(path: str) -> str:
    """Of a file's part: short, and possible on every disk."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def make_way(destination: Path, root: Path, made: set[Path] | None = None) -> None:
    """Make the folders for a file, and remove anything else of that name. No link below `root` is followed. `made` are
    folders that this did for files before, while no link was made: thousands of files are in few folders."""
    made = set() if made is None else made
    if destination.parent not in made:
        place = root
        for part in destination.relative_to(root).parts[:-1]:
            place = place / part
            if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
                place.unlink()
            place.mkdir(parents=True, exist_ok=True)
        root.mkdir(parents=True, exist_ok=True)
        made.add(destination.parent)
    if destination.is_dir() and not destination.is_symlink():
        remove_folder(os.fspath(destination))


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


@contextlib.contextmanager
def _parts_folder(shared: Path) -> Iterator[Path]:
    """`shared`, with all that is to be continued, for one process at a time; for others a folder of their own, which
    they remove."""
    shared.parent.mkdir(parents=True, exist_ok=True)
    lock = shared.with_name(f"{shared.name}.lock")
    descriptor = open_regular(lock, os.O_RDWR | os.O_CREAT, follows_link=False, mode=0o600)
    try:
        if not try_lock(descriptor):
            with _own_folder(shared) as own:
                yield own
            return
        _remove_stale(shared, lock)
        shared.mkdir(exist_ok=True)
        if shared.is_symlink():
            raise OSError(errno.ELOOP, "is a link", os.fspath(shared))
        try:
            yield shared
        finally:
            with contextlib.suppress(OSError):
                shared.rmdir()  # unless something in it is to be continued
    finally:
        os.close(descriptor)


class PartialFile:
    """What is here of a file that is arriving. Opened when something comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = 0
        self._hash = hashlib.sha256()
        self._descriptor: int | None = None
        with contextlib.suppress(FileNotFoundError), _opened(path) as source:
            while data := source.read(CHUNK):
                self._hash.update(data)
                self.length += len(data)
        self._is_continued = self.length > 0

    def digest(self) -> str:
        return self._hash.hexdigest()

    def write(self, offset: int, data: bytes) -> None:
        descriptor = self._opened()
        if offset == 0 and self.length:  # the host's file does not begin with what is here
            os.ftruncate(descriptor, 0)
            self.length, self._hash, self._is_continued = 0, hashlib.sha256(), False
        if offset != self.length:
            raise HostError(f"The far side sent byte {offset} of a file where {self.length} was due.")
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        self._hash.update(data)
        self.length += len(data)

    def is_whole(self, length: int, digest: object) -> bool:
        """Whether a file of this length and digest lies under the part's name. If nothing came, it is empty."""
        if length != self.length or digest != self.digest():
            return False
        try:
            status = os.fstat(self._opened())
            if status.st_size != length or not os.path.samestat(status, self.path.stat()):
                return False
            if not self._is_continued:
                return True
            with _opened(self.path) as source:  # what came first was written by another process
                return digest_of_stream(source) == digest
        except FileNotFoundError:
            return False

    def close(self) -> None:
        if self._descriptor is None:
            return
        os.close(self._descriptor)
        self._descriptor = None

    def discard(self) -> None:
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _opened(self) -> int:
        """At its end, even if another process changes it: a hole would have the right size."""
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_APPEND | _BINARY | _NO_LINK
            flags |= 0 if self.length else os.O_CREAT | os.O_TRUNC
            self._descriptor = open_regular(self.path, flags, follows_link=False)
        return self._descriptor


def _opened(path: Path) -> FileIO:
    return FileIO(open_regular(path, follows_link=False))


@contextlib.contextmanager
def _own_folder(shared: Path) -> Iterator[Path]:
    own = shared.with_name(f"{shared.name}-{os.getpid()}-{os.urandom(4).hex()}")
    own.mkdir()
    try:
        yield own
    finally:
        _remove_tree(own)


def _remove_stale(shared: Path, lock: Path) -> None:
    """By the disk's own clock."""
    with contextlib.suppress(OSError):
        os.utime(lock)
        now = lock.stat().st_mtime
        for folder in shared.parent.glob(f"{shared.name}-*"):
            if now - folder.stat().st_mtime > STALE:
                _remove_tree(folder)


def _remove_tree(folder: Path) -> None:
    with contextlib.suppress(OSError):
        remove_folder(os.fspath(folder))
