"""Files that are written whole or not at all, and errors of the disk as sentences with a remedy."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

from holdfast.errors import StorageError


def storage_error(error: OSError, doing: str, path: Path | str) -> StorageError:
    """`doing` completes "Could not …": `write the record of the run`."""
    message = f"Could not {doing}: {error.strerror or error} (`{path}`)."
    return StorageError(message, _REMEDIES.get(error.errno or 0, _OTHER_REMEDY))


def beside(path: Path) -> Path:
    """Where the new content of `path` is written before it is moved there. Short whatever `path` is called: a name of
    255 bytes is a name."""
    return path.with_name(f".holdfast-{os.getpid()}-{os.urandom(4).hex()}.new")


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it. The caller sees to it that nobody reads it before."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_whole(path: Path, data: bytes) -> None:
    """Put `data` at `path`: readers see the old contents or the new, also after a crash or on a full disk."""
    temporary = beside(path)
    try:
        write_durably(temporary, data)
        move(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def set_executable(path: Path, is_executable: bool) -> None:
    """Let all who may read a file run it too, or nobody, if that is not how it is for its owner. A disk that does not
    know of this is left as it is."""
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode & 0o777
        if bool(mode & 0o100) != is_executable:
            path.chmod(mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111)


def move(source: Path, target: Path) -> None:
    """Give a file another name; what had it before is replaced. Windows refuses while anybody has one of them open, as
    those who show a run's output have for moments: there it is tried again for a while."""
    for seconds in _WINDOWS_WAITS if sys.platform == "win32" else ():
        try:
            source.replace(target)
        except PermissionError:
            import time

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


_WINDOWS_WAITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)

_FULL = "The disk or the quota is full. Make room there, then run the same command again."
_READ_ONLY = "The folder cannot be written to. Check who owns it and whether its disk is mounted read-only."

_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EIO: "The disk reports an error of its own; `dmesg` has more. Keep a copy of the project.",
    errno.ENAMETOOLONG: "Names have at most 255 bytes and paths 4095: use a folder whose path is shorter.",
}
_OTHER_REMEDY = "Check the folder and its disk, then run the same command again."
