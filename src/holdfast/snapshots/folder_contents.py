"""Files of any folder, named by their contents where they lie: nothing of them is stored. What was read before is known
again by its stat, as in a snapshot."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat as modes
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import ProjectError, StorageError
from holdfast.frozen import dataclass
from holdfast.regular_files import open_regular
from holdfast.snapshots.cache import Cache, CacheWriter, Known, NoCache, load_cache, writing_cache
from holdfast.snapshots.manifest import encode_rows
from holdfast.snapshots.store import CHUNK, ObjectStore
from holdfast.snapshots.warnings import shown

_STOP = "Stop what writes to it, then submit again."
Reading = Generator[tuple[int, int], None, "FolderContents"]
"""Yields bytes that were read so far, and those that have to be read."""


@dataclass(frozen=True)
class FolderContents:
    """`digest` names the `manifest`, whose paths and contents it stands for; `places`: where they lie. `was_read`:
    bytes that were not known from before."""

    digest: str
    manifest: bytes
    files: int
    size: int
    known: Mapping[str, Known]
    places: Mapping[str, str]
    was_read: int = 0


def list_folder(root: str) -> dict[str, str]:
    """Path below `root` and place of each file and link. Raises ProjectError for what cannot be read or sent: folders
    that are closed, pipes and devices, links that lead outside."""
    found: dict[str, str] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as scan:
                entries = list(scan)
        except OSError as error:
            raise _unreadable(os.path.join(root, folder), error) from error
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                _require_inside(path, entry.path)
                found[path] = entry.path
            elif entry.is_dir(follow_symlinks=False):
                pending.append(path)
            elif entry.is_file(follow_symlinks=False):
                found[path] = entry.path
            else:
                raise ProjectError(
                    f"`{entry.path}` is neither a file nor a folder.", "Remove it, or name a folder without it."
                )
    return found


def read_contents(places: Mapping[str, str], state: Path | None = None, keeps: bool = True) -> Reading:
    """The contents at `places`, by their paths in the manifest. `state`: a folder that remembers them; `keeps`: what is
    read now, too. Raises ProjectError for what cannot be read, or changes meanwhile."""
    cache = Cache() if state is None else load_cache(state)
    stats = {path: _stat(place) for path, place in places.items()}
    known = {path: old for path, old in cache.known.items() if path in stats and _stamp(stats[path]) == old[:4]}
    unread = [path for path in places if path not in known]
    total, done = sum(stats[path].st_size for path in unread), 0
    if unread or len(known) < len(cache.known):
        is_kept = state is not None and keeps
        with writing_cache(state) if state is not None and keeps else contextlib.nullcontext(NoCache()) as writer:
            lasting = dict(known)
            for path in unread:
                yield done, total
                entry = yield from _entry(places[path], done, total)
                known[path], done = entry, done + entry[2]
                if is_kept and _may_enter(writer, entry):
                    lasting[path] = entry
            writer.commit(Cache(known=lasting))
    rows = [(path, each[4], each[5], 0 if each[4] == "l" else each[2]) for path, each in known.items()]
    manifest = encode_rows(rows)
    size = sum(row[3] for row in rows)
    return FolderContents(hashlib.sha256(manifest).hexdigest(), manifest, len(rows), size, known, places, done)


class PlacedContents(ObjectStore):
    """Contents where they lie, for sending them. One that is another by now raises ProjectError."""

    keeps = False

    def __init__(self, contents: FolderContents) -> None:
        super().__init__(Path())
        self._contents = contents
        self._paths = {each[5]: path for path, each in contents.known.items() if each[4] != "l"}

    def read(self, digest: str) -> bytes:
        if digest != self._contents.digest:
            raise StorageError(f"There is no manifest `{digest}`.", "Submit again.")
        return self._contents.manifest

    def path_of(self, digest: str) -> Path:
        return Path(self._contents.places[self._paths[digest]])

    def open(self, digest: str) -> BinaryIO:
        if digest == self._contents.digest:  # of the manifest nobody can have changed a byte
            return io.BytesIO(self._contents.manifest)
        path = self._paths[digest]
        place = self._contents.places[path]
        stream = _opened(place)
        if _stamp(os.fstat(stream.fileno())) != self._contents.known[path][:4]:
            stream.close()
            raise _changed(place)
        return stream


def _entry(place: str, done: int, total: int) -> Generator[tuple[int, int], None, Known]:
    status = _stat(place)
    if modes.S_ISLNK(status.st_mode):
        return (*_stamp(status), "l", os.readlink(place))
    hashing, size = hashlib.sha256(), 0
    with _opened(place) as stream:
        before = os.fstat(stream.fileno())
        while chunk := _read(stream, place):
            hashing.update(chunk)
            size += len(chunk)
            yield done + size, total
        after = os.fstat(stream.fileno())
    if _stamp(before) != _stamp(after) or size != after.st_size:
        raise _changed(place)
    kind = "x" if after.st_mode & modes.S_IXUSR else "f"
    return (*_stamp(after), kind, hashing.hexdigest())


def _read(stream: BinaryIO, place: str) -> bytes:
    try:
        return stream.read(CHUNK)
    except OSError as error:
        raise _unreadable(place, error) from error


def _opened(place: str) -> BinaryIO:
    try:
        return open(open_regular(place, follows_link=False), "rb", buffering=0)
    except OSError as error:
        raise _unreadable(place, error) from error


def _stat(place: str) -> os.stat_result:
    try:
        return os.lstat(place)
    except OSError as error:
        raise _unreadable(place, error) from error


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _may_enter(writer: CacheWriter, entry: Known) -> bool:
    """A file that was changed a moment ago may change once more without a new time."""
    return entry[0] < writer.begun and entry[1] < writer.begun


def _require_inside(path: str, place: str) -> None:
    target = os.readlink(place)
    away = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or away == ".." or away.startswith(f"..{os.sep}"):
        raise ProjectError(
            f"`{place}` is a link to `{target}`, outside the folder, where no run would find it.",
            "Replace it with what it leads to, or name a folder that has both.",
        )


def _unreadable(place: str, error: OSError) -> ProjectError:
    return ProjectError(
        f"`{place}` cannot be read: {error.strerror}.",
        "Make it readable for this account, or name a folder without it.",
    )


def _changed(place: str) -> ProjectError:
    return ProjectError(f"{shown(place)} was changed while it was read or sent.", _STOP)
