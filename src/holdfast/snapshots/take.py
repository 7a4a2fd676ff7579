"""Take a snapshot: every file that no rule leaves out goes into the store, and a manifest names them all."""

from __future__ import annotations

import bisect
import contextlib
import os
import stat as modes
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import BinaryIO

from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import dataclass
from holdfast.snapshots.cache import Cache, CacheWriter, Known, NoCache, load_cache, writing_cache
from holdfast.snapshots.ignore import FileListing, begin_listing
from holdfast.snapshots.include_globs import NOTHING, Include
from holdfast.snapshots.large_trees import LargeTree, large_tree
from holdfast.snapshots.manifest import encode_rows
from holdfast.snapshots.patterns import with_slashes
from holdfast.snapshots.store import ObjectStore, is_digest
from holdfast.snapshots.warnings import (
    LFS_POINTER,
    LFS_POINTER_LIMIT,
    Row,
    SnapshotWarning,
    content_warnings,
    shown,
    special_file,
    unreadable_file,
)

__all__ = ["Progress", "Snapshot", "SnapshotListener", "SnapshotWarning", "take_snapshot"]

Progress = Callable[[int, int], None]
"""Hears how many files and bytes have been read so far."""


@dataclass(frozen=True)
class SnapshotListener:
    """`begins` hears of much that is to be read, before any of it is."""

    progress: Progress
    begins: Callable[[LargeTree], None]


_TRIES = 3
_FILES_PER_REPORT = 64
_BYTES_PER_REPORT = 8_000_000


@dataclass(frozen=True)
class Selection:
    """`environment`: the variables for git; None: those of this process. `include` ships although a rule forbids it."""

    environment: Mapping[str, str] | None = None
    include: Include = NOTHING


@dataclass(frozen=True)
class Snapshot:
    """`digest` names it. `files` counts links too; `new_objects` counts contents that were not yet stored. `paths` are
    its files, in no order."""

    digest: str
    files: int
    bytes: int
    new_objects: int
    warnings: tuple[SnapshotWarning, ...]
    paths: Collection[str] = ()


def open_regular(path: str) -> BinaryIO:
    """Open for reading without following a link and without waiting for the other end of a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    return open(os.open(path, flags), "rb", buffering=0)


def take_snapshot(
    root: Path,
    state: Path,
    told: Progress | SnapshotListener | None = None,
    selection: Selection | None = None,
    opener: Callable[[str], BinaryIO] = open_regular,
    store: ObjectStore | None = None,
) -> Snapshot:
    """Snapshot the project at `root` into `state`/objects. With a `store` that keeps nothing, nothing is written.

    Raises ProjectError when `root` is not a folder, or a typed glob takes in nothing, and StorageError when the store
    cannot be written. What a single file does wrong (unreadable, changing, special) is a warning.
    """
    selection = selection or Selection()
    pending = begin_listing(root, selection.environment, include=selection.include)
    # Git lists files on another core while we look at those we know.
    base = real_path(root)
    store = store or ObjectStore(state / "objects")
    cache = load_cache(state)
    unchanged = cache.unchanged(base)
    if store.folder_times() != cache.folders:
        unchanged = _still_there(unchanged, store.digests())
    complete = len(unchanged) == len(cache.known) and is_digest(cache.manifest) and store.has(cache.manifest)
    listing = pending.finish_unless(cache.listing if complete else "")
    if listing is None:
        return _as_before(cache, ())
    unchanged = _of_that_kind(unchanged, listing.executable)
    reused = {path: unchanged[path] for path in listing.paths if path in unchanged}
    unread = [path for path in listing.paths if path not in reused]
    if complete and len(reused) == len(unchanged) and not any(os.path.lexists(f"{base}/{path}") for path in unread):
        return _as_before(cache, listing.warnings)
    if isinstance(told, SnapshotListener):
        much = large_tree(base, unread)
        if much is not None:
            told.begins(much)
    progress = told.progress if isinstance(told, SnapshotListener) else told
    with writing_cache(state) if store.keeps else contextlib.nullcontext(NoCache()) as writer:
        stored = store.digests()
        reading = _Reading(base, store, writer, opener, progress, listing.executable)
        reading.read_all(unread)
        return _assemble(reading, listing, cache, reused, stored)


class _Reading:
    """The files that have to be read, as they are read."""

    def __init__(
        self,
        base: str,
        store: ObjectStore,
        writer: CacheWriter,
        opener: Callable[[str], BinaryIO],
        progress: Progress | None,
        executable: Mapping[str, bool],
    ) -> None:
        self._base, self._opener, self._progress, self._executable = base, opener, progress, executable
        self.store = store
        self.writer = writer
        self.rows: list[Row] = []
        self.known: dict[str, Known] = {}
        self.pointers: list[str] = []
        self.warnings: list[SnapshotWarning] = []
        self._files = self._bytes = self._reported = 0

    def read_all(self, paths: list[str]) -> None:
        for path in paths:
            try:
                self._read(path)
            except FileNotFoundError:
                continue  # deleted since it was listed, or tracked by git and deleted before
            except NotADirectoryError:
                continue
            except OSError as error:
                self.warnings.append(unreadable_file(path, error))
            self._files += 1
            if self._files % _FILES_PER_REPORT == 0:
                self._report()
        self._report()

    def _read(self, path: str) -> None:
        whole = f"{self._base}/{path}"
        stat = os.lstat(whole)
        if modes.S_ISLNK(stat.st_mode):
            target = os.fsdecode(with_slashes(os.fsencode(os.readlink(whole))))
            self._enter(path, "l", target, 0, stat)
        elif modes.S_ISREG(stat.st_mode):
            self._read_regular(path, whole)
        elif not modes.S_ISDIR(stat.st_mode):  # a folder where git tracks a file: what is in it is listed by itself
            self.warnings.append(special_file(path))

    def _read_regular(self, path: str, whole: str) -> None:
        for _ in range(_TRIES):
            with self._opener(whole) as stream:
                before = os.fstat(stream.fileno())
                if not modes.S_ISREG(before.st_mode):
                    self.warnings.append(special_file(path))
                    return
                head = _Head(stream)
                digest, size = self.store.put_stream(head, self._on_chunk)
                after = os.fstat(stream.fileno())
            if _same(before, after) and size == after.st_size:
                break
        else:
            self.warnings.append(_restless(path))
        if size < LFS_POINTER_LIMIT and head.start.startswith(LFS_POINTER):
            self.pointers.append(path)
        kind = "x" if self._is_executable(path, after.st_mode, head.start) else "f"
        self._enter(path, kind, digest, size, after if _same(before, after) else None)

    def _is_executable(self, path: str, mode: int, start: bytes) -> bool:
        if sys.platform == "win32":  # the disk does not know; git may, and a script says it by its first line
            return self._executable.get(path, start.startswith(b"#!"))
        return bool(mode & modes.S_IXUSR)

    def _enter(self, path: str, kind: str, detail: str, size: int, stat: os.stat_result | None) -> None:
        self.rows.append((path, kind, detail, size))
        if stat is not None and self.writer.may_enter(stat):
            self.known[path] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino, kind, detail)

    def _on_chunk(self, size: int) -> None:
        self._bytes += size
        if self._bytes - self._reported >= _BYTES_PER_REPORT:
            self._report()

    def _report(self) -> None:
        self._reported = self._bytes
        if self._progress:
            self._progress(self._files, self._bytes)


class _Head:
    """A stream that remembers how it started."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.start = b""

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        if not self.start:
            self.start = data[: len(LFS_POINTER)]
        return data


def _still_there(unchanged: dict[str, Known], stored: set[str]) -> dict[str, Known]:
    """The files whose content the store still has. The others are read again."""
    if {known[5] for known in unchanged.values() if known[4] != "l"} <= stored:
        return unchanged
    return {path: known for path, known in unchanged.items() if known[4] == "l" or known[5] in stored}


def _of_that_kind(unchanged: dict[str, Known], executable: Mapping[str, bool]) -> dict[str, Known]:
    """The files that are executable or not as git says: on Windows that can change without the file."""
    if not executable:
        return unchanged
    return {
        path: known for path, known in unchanged.items() if executable.get(path, known[4] == "x") == (known[4] == "x")
    }


def _as_before(cache: Cache, warnings: tuple[SnapshotWarning, ...]) -> Snapshot:
    return Snapshot(cache.manifest, len(cache.known), cache.bytes, 0, (*warnings, *cache.warnings), cache.known.keys())


def _assemble(
    reading: _Reading, listing: FileListing, cache: Cache, reused: dict[str, Known], stored: set[str]
) -> Snapshot:
    """Put old and new together, store the manifest, and write the cache."""
    rows: list[Row] = [(path, known[4], known[5], 0 if known[4] == "l" else known[2]) for path, known in reused.items()]
    rows = _without_files_behind_links(sorted(rows + reading.rows))
    pointers = [*(path for path in cache.pointers if path in reused), *reading.pointers]
    about_contents = content_warnings(rows, pointers)
    data = encode_rows(rows)
    store = reading.store
    digest = store.put_bytes(data)
    total = sum(row[3] for row in rows)
    new = {row[2] for row in reading.rows if row[1] != "l"} - stored
    known = {**reused, **reading.known}
    fingerprint = listing.fingerprint if len(known) == len(rows) == len(listing.paths) else ""
    times = store.folder_times()
    reading.writer.commit(Cache(digest, fingerprint, total, known, tuple(pointers), about_contents, times))
    warnings = (*listing.warnings, *reading.warnings, *about_contents)
    return Snapshot(digest, len(rows), total, len(new), warnings, [row[0] for row in rows])


def _without_files_behind_links(rows: list[Row]) -> list[Row]:
    """Git still names `a/b` when `a` has become a link; the link ships, and what it leads to does not."""
    links = [row[0] for row in rows if row[1] == "l"]
    for link in links:
        start = bisect.bisect_left(rows, (link + "/",))
        end = bisect.bisect_left(rows, (link + "0",))  # `0` follows `/`
        del rows[start:end]
    return rows


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_mtime_ns, before.st_ctime_ns, before.st_size) == (
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_size,
    )


def _restless(path: str) -> SnapshotWarning:
    message = f"{shown(path)} kept changing while it was read; the snapshot has what was read last."
    return SnapshotWarning(path, message, "Stop what writes to it and submit again, or leave it out in .amlignore.")
