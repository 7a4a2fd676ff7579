"""Files that are written whole or not at all, locks on open ones, and errors of the disk as sentences with a remedy."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import StorageError

FULL = "The disk or the quota is full. Make room there, then run the same command again."
READ_ONLY = "The folder cannot be written to. Check who owns it and whether its disk is mounted read-only."


def storage_error(error: OSError, doing: str, path: Path | str) -> StorageError:
    """`doing` completes "Could not …": `write the record of the run`."""
    message = f"Could not {doing}: {error.strerror or error} (`{path}`)."
    return StorageError(message, _REMEDIES.get(error.errno or 0, _OTHER_REMEDY))


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Gives the name under which to write. After the block, what was written has the name `path`: readers see the old
    content or the new one. If it fails, as on a full disk, the old content stays and nothing is left beside it."""
    temporary = path.with_name(f".hf-new-{os.urandom(8).hex()}")  # short: `path` may have 255 bytes
    try:
        yield temporary
        move(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_whole(path: Path, data: bytes, mode: int | None = None, is_durable: bool = False) -> None:
    """Put `data` at `path`, as `whole` does. `mode`: else the umask decides. `is_durable`: also after a power cut."""
    with whole(path) as temporary:
        if is_durable:
            write_durably(temporary, data)
        else:
            with create_new(temporary) as file:
                file.write(data)
        if mode is not None:
            temporary.chmod(mode)
    if is_durable:
        sync_folder(path.parent)


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it. Until then it must not be read, which the caller sees to."""
    with create_new(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def create_new(path: Path, mode: int = 0o666) -> BinaryIO:
    """A file for writing that nothing was in the place of, also no link. Raises FileExistsError otherwise."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags | getattr(os, "O_CLOEXEC", 0), mode), "wb")


def write_once(path: Path, data: bytes, mode: int = 0o666) -> bool:
    """Make the file whole, unless something has its name: the second process leaves what the first one wrote. Returns
    whether it was made."""
    if os.path.lexists(path):
        return False
    beside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with create_new(beside, mode) as file:
            file.write(data)
        try:
            os.link(beside, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            return _create_in_place(path, data, mode)
        return True
    finally:
        beside.unlink(missing_ok=True)


def _create_in_place(path: Path, data: bytes, mode: int) -> bool:
    try:
        file = create_new(path, mode)
    except FileExistsError:
        return False
    try:
        with file:
            file.write(data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def set_executable(path: Path, is_executable: bool) -> None:
    """Let all who may read a file run it too, or none, unless that is so for its owner. A disk without such permissions
    is left as it is."""
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode & 0o777
        if bool(mode & 0o100) != is_executable:
            path.chmod(mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111)


def move(source: Path, target: Path) -> None:
    """Rename a file; one that has the name is replaced. Windows refuses while a process has one of them open, as
    readers of a run's output do for moments: there it is tried again for a while."""
    for seconds in _WINDOWS_WAITS if sys.platform == "win32" else ():
        try:
            source.replace(target)
        except PermissionError:
            time.sleep(seconds)
        else:
            return
    source.replace(target)


def sync_folder(folder: Path) -> None:
    """Make names in `folder` durable. Some file systems refuse, and then there is nothing to do."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Whether the lock is ours now; closing the descriptor, or the end of the process, releases it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_BEYOND = 1 << 30
"""On Windows no other process can read a byte that is locked: one is taken that no file has."""
_WINDOWS_WAITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)

_REMEDIES = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EROFS: READ_ONLY,
    errno.EACCES: READ_ONLY,
    errno.EPERM: READ_ONLY,
    errno.EIO: "The disk reports an error of its own; `dmesg` has more. Keep a copy of the project.",
    errno.ENAMETOOLONG: "Names have at most 255 bytes and paths 4095: use a folder whose path is shorter.",
}
_OTHER_REMEDY = "Check the folder and its disk, then run the same command again."
