"""The near copies of a run's far files: written by one process at a time, by offset, checked against what is there."""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import HostError, StorageError
from holdfast.history.records import DIVERGED
from holdfast.hosts.connection import Push

_NAME = re.compile(r"(journal\.jsonl|driver_log|control_log|metrics/[A-Za-z0-9][A-Za-z0-9._-]{0,150}\.jsonl)\Z")


class Mirror:
    """Made by whoever holds the run's `writer.lock`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def have(self) -> dict[str, list[int]]:
        """Bytes at home and their checksum, per file: what the far side continues from."""
        found = {}
        for name in ("journal.jsonl", "driver_log", "control_log", *self._metric_files()):
            path = self._folder / name
            if path.exists():
                found[name] = list(_size_and_checksum(path))
        return found

    def apply(self, push: Push) -> None:
        """Write what came. Bytes that do not continue the copy are refused: the connection is then taken up again by
        offset."""
        if not _NAME.match(push.file):
            raise HostError(f"The far side sent a file `{push.file}` that no run has.")
        path = self._folder / push.file
        try:
            path.parent.mkdir(exist_ok=True)
            if push.kind == "restart":
                _set_aside(path)
                return
            with path.open("ab") as target:
                if target.tell() != push.offset:
                    raise HostError(f"The far side sent `{push.file}` from byte {push.offset}, not {target.tell()}.")
                target.write(push.data)
        except OSError as error:
            raise StorageError(
                f"The run's output cannot be stored at `{path}`: {error.strerror}.",
                "The run goes on. Make room, then: holdfast logs -f",
            ) from error

    def _metric_files(self) -> list[str]:
        try:
            return [f"metrics/{name}" for name in sorted(os.listdir(self._folder / "metrics"))]
        except FileNotFoundError:
            return []


@contextlib.contextmanager
def writer_lock(folder: Path) -> Iterator[bool]:
    """Whether this process is the one that may write the copies. Released when it ends, however it ends."""
    import fcntl  # only where runs are; a client without it has no local runs

    descriptor = os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _set_aside(path: Path) -> None:
    """A copy that is not the beginning of the far file is kept under another name, never spliced."""
    number = 1
    while path.exists():
        other = path.with_name(f"{path.name}{DIVERGED}{number}")
        if not other.exists():
            path.rename(other)
        number += 1


def _size_and_checksum(path: Path) -> tuple[int, int]:
    size = checksum = 0
    with path.open("rb") as source:
        while data := source.read(1 << 20):
            checksum = zlib.crc32(data, checksum)
            size += len(data)
    return size, checksum
