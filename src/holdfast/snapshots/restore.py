"""Write a snapshot's files into a folder: copies, never links into the store, never outside it."""

from __future__ import annotations

import os
import stat as modes
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import ProjectError, StorageError
from holdfast.farside.system.real_paths import real_path
from holdfast.project.file_names import unstorable
from holdfast.regular_files import open_regular
from holdfast.snapshots.manifest import ManifestEntry, decode
from holdfast.snapshots.store import ObjectStore, cannot_write, damaged, digest_of_stream
from holdfast.snapshots.warnings import shown
from holdfast.whole_files import whole

_NAMED = 20


def restore_snapshot(store: ObjectStore, digest: str, destination: Path, overwrite: bool = False) -> int:
    """Make `destination` hold the snapshot's files; how many there are. Other files there stay. A link is made as it
    was, wherever it leads; nothing is read or written through it.

    Raises ProjectError, before anything is written, when a file there differs and `overwrite` is false, or
    when a folder is where a file has to be. Raises StorageError when an object is missing or damaged, or when
    nothing can be written.
    """
    entries = decode(store.read(digest))
    for entry in entries:
        if entry.kind != "l" and not store.has(entry.detail):
            store.open(entry.detail).close()  # says what is missing
    for path, reason in unstorable(entry.path for entry in entries).items():
        message = f"{shown(path)} cannot be restored on this system: {reason}."
        raise StorageError(message, "Restore the run on a Linux machine.")
    base = real_path(destination)
    _require_folder(base, destination)
    differing = list(_differing(entries, base))
    _refuse(differing, destination, overwrite)
    try:
        os.makedirs(base, exist_ok=True)
        for entry in sorted(entries, key=lambda each: each.kind == "l"):  # no file is written through a link
            if not _is_there(base, entry):
                _make_folders(base, entry.path)
                _write(store, entry, f"{base}/{entry.path}")
    except OSError as error:
        raise cannot_write(destination, error) from error
    return len(entries)


def require_room(destination: Path) -> None:
    """Raises ProjectError if the folder has files: they could not be told from what is restored."""
    try:
        has_files = bool(os.listdir(destination))
    except OSError:
        return  # it is not there, or is no folder, or cannot be read: writing to it says so
    if has_files:
        raise ProjectError(
            f"{shown(str(destination))} is not empty, and nothing was restored.",
            "Name a new folder with --path. To write into this one, replacing files that differ: --overwrite",
        )


def _require_folder(base: str, destination: Path) -> None:
    """Raises StorageError if the destination, or a folder above it, is a file."""
    place = base
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        what = "it" if place == base else shown(place)
        message = f"{shown(str(destination))} cannot be written: {what} is a file, not a folder."
        raise StorageError(message, "Name another folder with --path.")


def _is_there(base: str, entry: ManifestEntry) -> bool:
    """Whether the file is already what it should be."""
    place = f"{base}/{entry.path}"
    if _link_above(base, entry.path) is not None:
        return False
    try:
        stat = os.lstat(place)
        if entry.kind == "l":
            return modes.S_ISLNK(stat.st_mode) and os.readlink(place) == entry.detail
        if not modes.S_ISREG(stat.st_mode) or stat.st_size != entry.size:
            return False
        if sys.platform != "win32" and bool(stat.st_mode & modes.S_IXUSR) != (entry.kind == "x"):
            return False
        with open(open_regular(place, follows_link=False), "rb") as stream:
            return digest_of_stream(stream) == entry.detail
    except OSError:
        return False


def _differing(entries: tuple[ManifestEntry, ...], base: str) -> Iterator[tuple[str, bool]]:
    """What is in the way: its path, and whether it is a folder."""
    seen: set[str] = set()
    for entry in entries:
        blocker = _link_above(base, entry.path) or _file_above(base, entry.path)
        if blocker is None and os.path.lexists(f"{base}/{entry.path}") and not _is_there(base, entry):
            blocker = entry.path
        if blocker is not None and blocker not in seen:
            seen.add(blocker)
            place = f"{base}/{blocker}"
            yield blocker, os.path.isdir(place) and not os.path.islink(place)


def _refuse(differing: list[tuple[str, bool]], destination: Path, overwrite: bool) -> None:
    blocking = [path for path, is_folder in differing if is_folder or not overwrite]
    if not blocking:
        return
    names = [f"  {shown(path)}" for path in blocking[:_NAMED]]
    if len(blocking) > _NAMED:
        names.append(f"  and {len(blocking) - _NAMED} more")
    if overwrite:
        message = f"There is a folder in {shown(str(destination))} where the snapshot has a file:"
        raise ProjectError(message, "Move it away, or restore into another folder.", names)
    message = f"{len(blocking)} path(s) in {shown(str(destination))} differ from the snapshot:"
    raise ProjectError(message, "Restore into another folder, or give --overwrite to replace them.", names)


def _parents(path: str) -> Iterator[str]:
    position = path.find("/")
    while position >= 0:
        yield path[:position]
        position = path.find("/", position + 1)


def _link_above(base: str, path: str) -> str | None:
    """The first folder above `path` that is a link: writing would leave the destination through it."""
    return next((parent for parent in _parents(path) if os.path.islink(f"{base}/{parent}")), None)


def _file_above(base: str, path: str) -> str | None:
    for parent in _parents(path):
        place = f"{base}/{parent}"
        if not os.path.isdir(place):
            return parent if os.path.lexists(place) else None
    return None


def _make_folders(base: str, path: str) -> None:
    for parent in _parents(path):
        place = f"{base}/{parent}"
        try:
            os.mkdir(place)
        except FileExistsError:
            if not modes.S_ISDIR(os.lstat(place).st_mode):  # a link or a file, which may be replaced: see _refuse
                os.unlink(place)
                os.mkdir(place)


def _write(store: ObjectStore, entry: ManifestEntry, place: str) -> None:
    """Beside its place first and then renamed over it: an interruption leaves the old file or the new one."""
    with whole(Path(place)) as temporary:
        if entry.kind == "l":
            _link(entry, os.fspath(temporary))
        else:
            _copy(store, entry, os.fspath(temporary))


def _link(entry: ManifestEntry, place: str) -> None:
    try:
        os.symlink(entry.detail, place)
    except OSError as error:
        if sys.platform != "win32":
            raise
        raise StorageError(
            f"{shown(entry.path)} is a link, and Windows does not let this account make one: {error.strerror}.",
            "Switch on Windows' developer mode, or restore the run on a Linux machine.",
        ) from error


def _copy(store: ObjectStore, entry: ManifestEntry, place: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(place, flags, 0o777 if entry.kind == "x" else 0o666)  # less what the umask takes
    with store.open(entry.detail) as source, open(descriptor, "wb") as target:
        found = digest_of_stream(source, target)
    if found != entry.detail:
        raise damaged(entry.detail, store.path_of(entry.detail))
