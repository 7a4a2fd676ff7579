"""The content of an open file in another one, as quickly as the disk and the kernel can."""

import errno
import os
from typing import Any, Callable

from holdfast.farside.system.files import reflink

_PIECE = 64 << 20
"""Bytes after which `beat` is called."""
_CANNOT = (errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
"""What a kernel or a disk answers that cannot copy by itself."""

_COPY_FILE_RANGE: Any = getattr(os, "copy_file_range", None)
"""None before Python 3.8."""

_Step = Callable[[int, int, int], int]


class Copier:
    """For many files: what the disk refused once is not tried again. `beat` is called all the time, and may raise."""

    def __init__(self, beat: Callable[[], None] = lambda: None) -> None:
        self._beat = beat
        self._clones = True
        self._steps = [_by_range, _by_sendfile, _by_hand] if _COPY_FILE_RANGE else [_by_sendfile, _by_hand]

    def copy(self, reader: int, writer: int) -> None:
        """The whole of `reader` into the empty file `writer`. They share blocks where the disk can do that; else the
        kernel copies, and a change of one never reaches the other. Raises OSError."""
        self._beat()
        size = os.fstat(reader).st_size
        if size and self._clones:
            self._clones = reflink(reader, writer)
            if self._clones:
                return
        done = 0
        while True:
            copied = self._step(reader, writer, done)
            if not copied:
                return
            done += copied
            self._beat()

    def _step(self, reader: int, writer: int, done: int) -> int:
        while True:
            try:
                return self._steps[0](reader, writer, done)
            except OSError as error:
                if error.errno not in _CANNOT or len(self._steps) == 1:
                    raise
                self._steps = self._steps[1:]


def _by_range(reader: int, writer: int, done: int) -> int:
    return int(_COPY_FILE_RANGE(reader, writer, _PIECE, done, done))


def _by_sendfile(reader: int, writer: int, done: int) -> int:
    os.lseek(writer, done, os.SEEK_SET)
    return os.sendfile(writer, reader, done, _PIECE)


def _by_hand(reader: int, writer: int, done: int) -> int:
    data = os.pread(reader, 1 << 20, done)
    view = memoryview(data)
    place = done
    while view:
        count = os.pwrite(writer, view, place)
        view, place = view[count:], place + count
    return len(data)
