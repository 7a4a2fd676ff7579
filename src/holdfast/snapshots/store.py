"""The content-addressed store, `.holdfast/objects`: contents by sha256, plain, read-only, written once."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from holdfast.errors import StorageError
from holdfast.regular_files import open_regular, what_is_odd

CHUNK = 1 << 20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class ObjectStore:
    """`root` is the folder with the fan-out (`ab/cdef…`); it is made when the first object is put."""

    keeps = True
    """Whether what is put is there later."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._plain: set[str] = set()
        """Folders of the fan-out that are no links; looked at once."""

    def put_bytes(self, data: bytes) -> str:
        """Store `data` and return its digest. A repeat changes nothing."""
        digest = hashlib.sha256(data).hexdigest()
        if not self._holds(digest, len(data)):
            with self._temporary() as (descriptor, temporary):
                self._guarded_write(descriptor, data)
            self._adopt(temporary, digest, len(data))
        return digest

    def put_stream(self, stream: _Readable, on_chunk: Callable[[int], None] | None = None) -> tuple[str, int]:
        """Store what `stream` yields until its end; `on_chunk` hears the size of every piece."""
        first = _fill(stream)
        if on_chunk:
            on_chunk(len(first))
        if len(first) < CHUNK:
            return self.put_bytes(first), len(first)
        hashing, size = hashlib.sha256(first), len(first)
        with self._temporary() as (descriptor, temporary):
            self._guarded_write(descriptor, first)
            while chunk := stream.read(CHUNK):
                hashing.update(chunk)
                size += len(chunk)
                self._guarded_write(descriptor, chunk)
                if on_chunk:
                    on_chunk(len(chunk))
        digest = hashing.hexdigest()
        self._adopt(temporary, digest, size)
        return digest, size

    def path_of(self, digest: str) -> Path:
        return self.root / _checked(digest)[:2] / digest[2:]

    def has(self, digest: str) -> bool:
        return self._status(digest) is not None

    def read(self, digest: str) -> bytes:
        """The content, checked against its name."""
        with self.open(digest) as stream:
            data = stream.read()
        if hashlib.sha256(data).hexdigest() != digest:
            raise damaged(digest, self.path_of(digest))
        return data

    def open(self, digest: str) -> BinaryIO:
        path = self.path_of(digest)
        self._refuse_link(path.parent)
        try:
            return os.fdopen(open_regular(path, follows_link=False), "rb")
        except FileNotFoundError:
            raise StorageError(
                f"The store has no object `{digest}`.",
                f"It was removed from {self.root}; a run that needs it has to be submitted again.",
            ) from None
        except OSError as error:
            raise StorageError(
                f"The object `{digest}` cannot be read: {error.strerror}.",
                f"Check the permissions of {path}.",
            ) from None

    def digests(self) -> set[str]:
        """Everything in the store: one listing per folder, far cheaper than asking for each object."""
        found: set[str] = set()
        for folder in self._folders():
            with suppress(OSError):
                found.update([folder + name for name in os.listdir(f"{os.fspath(self.root)}/{folder}")])
        return found

    def folder_times(self) -> dict[str, int]:
        """When each fan-out folder last changed: where that is as it was, no object has come or gone."""
        root = os.fspath(self.root)
        try:
            return {folder: os.stat(f"{root}/{folder}").st_mtime_ns for folder in self._folders()}
        except OSError:
            return {}

    def _folders(self) -> list[str]:
        with suppress(OSError), os.scandir(self.root) as entries:
            return [each.name for each in entries if len(each.name) == 2 and each.is_dir(follow_symlinks=False)]
        return []

    def _holds(self, digest: str, size: int) -> bool:
        # A crash of the machine can leave an object shorter than its name promises; its size tells.
        status = self._status(digest)
        return status is not None and status.st_size == size

    def _status(self, digest: str) -> os.stat_result | None:
        """Of the object; None where there is none."""
        path = self.path_of(digest)
        self._refuse_link(path.parent)
        try:
            status = path.lstat()
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _refuse_link(self, folder: Path) -> None:
        if folder.name not in self._plain:
            if os.path.islink(folder):
                raise StorageError(*what_is_odd(str(folder)))
            self._plain.add(folder.name)

    @contextmanager
    def _temporary(self) -> Iterator[tuple[int, Path]]:
        """A new file beside the objects, to be written here and adopted afterwards; gone if something goes wrong."""
        temporary = self.root / f".incoming-{os.getpid()}-{os.urandom(6).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        mode = 0o666 if sys.platform == "win32" else 0o444  # Windows neither replaces nor removes what is read-only
        with self._storage_errors():
            try:
                descriptor = os.open(temporary, flags, mode)
            except FileNotFoundError:
                self.root.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(temporary, flags, mode)
        try:
            yield descriptor, temporary
        except BaseException:
            os.close(descriptor)
            _remove(temporary)
            raise
        os.close(descriptor)

    def _adopt(self, temporary: Path, digest: str, size: int) -> None:
        """Give what was written its name, which was not known before: hence not by `whole_files`. It is closed by now:
        Windows moves no file that is open."""
        final = self.path_of(digest)
        try:
            with self._storage_errors():
                if self._holds(digest, size):
                    return
                try:
                    temporary.replace(final)
                except FileNotFoundError:
                    final.parent.mkdir(exist_ok=True)
                    temporary.replace(final)
        finally:
            _remove(temporary)

    def _guarded_write(self, descriptor: int, data: bytes) -> None:
        with self._storage_errors():
            _write(descriptor, data)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise cannot_write(self.root, error) from error


class LookingStore(ObjectStore):
    """Names contents and writes none. What `put_bytes` got, such as a manifest, can be read back."""

    keeps = False

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._put: dict[str, bytes] = {}

    def put_bytes(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._put[digest] = data
        return digest

    def put_stream(self, stream: _Readable, on_chunk: Callable[[int], None] | None = None) -> tuple[str, int]:
        hashing, size = hashlib.sha256(), 0
        while chunk := stream.read(CHUNK):
            hashing.update(chunk)
            size += len(chunk)
            if on_chunk:
                on_chunk(len(chunk))
        return hashing.hexdigest(), size

    def read(self, digest: str) -> bytes:
        return self._put[digest] if digest in self._put else super().read(digest)


def digest_of_stream(source: _Readable, target: BinaryIO | None = None) -> str:
    """The name that the store would give to what `source` yields until its end, which is written to `target`."""
    hashing = hashlib.sha256()
    while chunk := source.read(CHUNK):
        hashing.update(chunk)
        if target is not None:
            target.write(chunk)
    return hashing.hexdigest()


def is_digest(text: str) -> bool:
    return len(text) == 64 and not text.strip("0123456789abcdef") and text.isalnum()


def cannot_write(folder: Path, error: OSError) -> StorageError:
    """The StorageError for a write below `folder` that failed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            f"There is no room left for `{folder}`: {error.strerror}.",
            "Make room on that disk, or remove ended runs: holdfast experiment clean --all",
        )
    return StorageError(
        f"`{folder}` cannot be written: {error.strerror}.",
        f"Make it writable (ls -ld {folder} shows whose it is), or work in a copy of the project.",
    )


def damaged(digest: str, path: Path) -> StorageError:
    return StorageError(
        f"The object `{digest}` is damaged: its content does not have this digest.",
        f"Remove it (rm {path}); the next submit stores it again if the project still has that file.",
    )


def _checked(digest: str) -> str:
    if not is_digest(digest):
        raise StorageError(
            f"`{digest[:80]!a}` is not a digest: 64 digits of 0-9 and a-f are needed.",
            "holdfast history list shows the runs and their snapshots.",
        )
    return digest


def _fill(stream: _Readable) -> bytes:
    """The first CHUNK bytes, or all there is."""
    data = stream.read(CHUNK)
    while 0 < len(data) < CHUNK and (more := stream.read(CHUNK - len(data))):
        data += more
    return data


def _remove(temporary: Path) -> None:
    with suppress(OSError):
        temporary.unlink()


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
