"""`snapshot-cache.json`: each file's stat when it was read, so that an unchanged file is not read again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.frozen import dataclass, field
from holdfast.snapshots.store import cannot_write
from holdfast.snapshots.warnings import SnapshotWarning

_NAME = "snapshot-cache.json"
_FORMAT = 1

Known = tuple[int, int, int, int, str, str]
"""One file: mtime_ns, ctime_ns, size, inode, kind, detail. Plain, because each submit reads ten thousand."""


@dataclass(frozen=True)
class Cache:
    """The last snapshot. `pointers` are files that hold a Git LFS pointer; `warnings` are about contents.

    `listing` is the fingerprint of a listing of exactly the known files, or empty. `folders` are the times of
    the store's folders, from which one sees that no object is lost without listing ten thousand of them.
    """

    manifest: str = ""
    listing: str = ""
    bytes: int = 0
    known: Mapping[str, Known] = field(default_factory=dict)
    pointers: tuple[str, ...] = ()
    warnings: tuple[SnapshotWarning, ...] = ()
    folders: Mapping[str, int] = field(default_factory=dict)

    def unchanged(self, root: str) -> dict[str, Known]:
        """The files that are what they were, by their stat."""
        found: dict[str, Known] = {}
        lstat, base = os.lstat, root + "/"
        for path, known in self.known.items():
            try:
                stat = lstat(base + path)
            except (OSError, ValueError):  # ValueError: a damaged cache can hold a NUL
                continue
            if (
                stat.st_mtime_ns == known[0]
                and stat.st_ctime_ns == known[1]
                and stat.st_size == known[2]
                and stat.st_ino == known[3]
            ):
                found[path] = known
        return found


def load_cache(state: Path) -> Cache:
    """The cache as it was written; an empty one when there is none, or a damaged one, or another's."""
    try:
        document = json.loads((state / _NAME).read_bytes())
        if document["format"] != _FORMAT:
            return Cache()
        known = _known(document["known"])
        return Cache(
            manifest=str(document["manifest"]),
            listing=str(document["listing"]),
            bytes=int(document["bytes"]),
            known=known,
            pointers=tuple([str(each) for each in document["pointers"]]),
            warnings=tuple([SnapshotWarning(*map(str, each)) for each in document["warnings"]]),
            folders=dict(document["folders"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return Cache()


class CacheWriter:
    """A cache about to be written. Its file is made first: `begun` is the file system's own idea of now."""

    def __init__(self, state: Path, stream: BinaryIO, temporary: Path) -> None:
        self._state, self._stream, self._temporary = state, stream, temporary
        self.begun = os.fstat(stream.fileno()).st_mtime_ns

    def may_enter(self, stat: os.stat_result) -> bool:
        """Whether a file that is read from now on with this stat can be known by it.

        A file that was touched no earlier than `begun` can change once more after it was read without its
        time changing, because clocks of file systems tick slowly. Git calls such entries racily clean.
        """
        return stat.st_mtime_ns < self.begun and stat.st_ctime_ns < self.begun

    def commit(self, cache: Cache) -> None:
        document = {
            "format": _FORMAT,
            "manifest": cache.manifest,
            "listing": cache.listing,
            "bytes": cache.bytes,
            "pointers": cache.pointers,
            "warnings": [[each.path, each.message, each.remedy] for each in cache.warnings],
            "folders": dict(cache.folders),
            "known": [list(cache.known), *map(list, zip(*cache.known.values(), strict=True))],
        }
        try:
            with self._stream as stream:
                stream.write(json.dumps(document, separators=(",", ":")).encode("ascii"))
            self._temporary.replace(self._state / _NAME)
        except OSError as error:
            if sys.platform == "win32" and isinstance(error, PermissionError):
                return  # another process reads the old one just now, which is as good
            raise cannot_write(self._state, error) from error


class NoCache(CacheWriter):
    """Of a snapshot that is not kept: no file is known by it later."""

    def __init__(self) -> None:
        self.begun = 0

    def commit(self, cache: Cache) -> None:
        pass


@contextmanager
def writing_cache(state: Path) -> Iterator[CacheWriter]:
    """Nothing is left behind unless `commit` was called. Errors of the block pass as they are."""
    temporary = state / f".{_NAME}-{os.urandom(8).hex()}"
    try:
        state.mkdir(parents=True, exist_ok=True)
        stream = temporary.open("xb")
    except OSError as error:
        raise cannot_write(state, error) from error
    try:
        yield CacheWriter(state, stream, temporary)
    finally:
        with suppress(OSError):
            stream.close()
        with suppress(OSError):
            temporary.unlink()


def _known(columns: list[Any]) -> dict[str, Known]:
    """The file has one list per column: read in half the time of one list per file."""
    if len(columns) == 1 and not columns[0]:
        return {}
    paths, mtimes, ctimes, sizes, inodes, kinds, details = columns
    if not set(map(type, paths)) == set(map(type, details)) == {str} or not set(kinds) <= {"f", "x", "l"}:
        raise ValueError("not a cache")
    return dict(zip(paths, zip(mtimes, ctimes, sizes, inodes, kinds, details, strict=True), strict=True))
