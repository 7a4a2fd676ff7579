"""Parts of files that are on their way home. What a broken link left of one is continued by one process at a time, and
what the disk has, not what was sent to it, decides whether a part is whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import HostError
from holdfast.snapshots.store import CHUNK, digest_of_stream
from holdfast.whole_files import try_lock

STALE = 86400.0
"""Seconds after which a process's own folder is taken for one that a killed process left."""
_BINARY = getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def parts_folder(shared: Path) -> Iterator[Path]:
    """`shared` for the process that has it now, with all that is to be continued; for others meanwhile a folder of
    their own, which goes with them."""
    shared.parent.mkdir(parents=True, exist_ok=True)
    lock = shared.with_name(f"{shared.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not try_lock(descriptor):
            with _own_folder(shared) as own:
                yield own
            return
        _remove_stale(shared, lock)
        shared.mkdir(exist_ok=True)
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
        with contextlib.suppress(FileNotFoundError), path.open("rb", buffering=0) as source:
            while data := source.read(CHUNK):
                self._hash.update(data)
                self.length += len(data)
        self._is_continued = self.length > 0

    def digest(self) -> str:
        return self._hash.hexdigest()

    def write(self, offset: int, data: bytes) -> None:
        descriptor = self._opened()
        if offset == 0 and self.length:  # the file over there does not begin with what is here
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
        """Whether a file of this length and digest lies under the part's name. One that nothing came for is empty."""
        if length != self.length or digest != self.digest():
            return False
        try:
            status = os.fstat(self._opened())
            if status.st_size != length or not os.path.samestat(status, self.path.stat()):
                return False
            if not self._is_continued:
                return True
            with self.path.open("rb", buffering=0) as source:  # what came first was written by another process
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
            flags = os.O_WRONLY | os.O_APPEND | _BINARY
            flags |= 0 if self.length else os.O_CREAT | os.O_TRUNC
            self._descriptor = os.open(self.path, flags, 0o666)
        return self._descriptor


@contextlib.contextmanager
def _own_folder(shared: Path) -> Iterator[Path]:
    import shutil

    own = shared.with_name(f"{shared.name}-{os.getpid()}-{os.urandom(4).hex()}")
    own.mkdir()
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _remove_stale(shared: Path, lock: Path) -> None:
    """By the disk's own clock."""
    with contextlib.suppress(OSError):
        os.utime(lock)
        now = lock.stat().st_mtime
        for folder in shared.parent.glob(f"{shared.name}-*"):
            if now - folder.stat().st_mtime > STALE:
                import shutil

                shutil.rmtree(folder, ignore_errors=True)
