"""The content of an open file in another one, as quickly as the disk and the kernel can."""

import errno
import os
import threading
from typing import Any, Callable, List

from holdfast.farside.system.files import reflink

_PIECE = 64 << 20
"""Bytes after which `beat` is called."""
_LARGE, _BLOCK = 64 << 20, 1 << 20
"""Bytes of a file that two threads copy, and of what one of them reads at once: it stays in the processor's cache."""
_CANNOT = (errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
"""What a kernel or a disk answers that cannot copy by itself."""

_COPY_FILE_RANGE = getattr(os, "copy_file_range", None)  # type: Any
_PREADV = getattr(os, "preadv", None)  # type: Any
"""None before Python 3.8 and 3.7."""

Beat = Callable[[], None]


class Copier:
    """For many files: what the disk refused once is not tried again. `beat` is called all the time, and may raise."""

    def __init__(self, beat: Beat = lambda: None) -> None:
        self._beat = beat
        self._clones = True
        self._steps = [_by_range, _by_sendfile, _by_hand] if _COPY_FILE_RANGE else [_by_sendfile, _by_hand]

    def copy(self, reader: int, writer: int) -> None:
        """The whole of `reader` into the empty file `writer`. They share blocks where the disk can do that; else it is
        copied, and a change of one never reaches the other. Raises OSError."""
        self._beat()
        size = os.fstat(reader).st_size
        if size and self._clones:
            self._clones = reflink(reader, writer)
            if self._clones:
                return
        if size >= _LARGE and _PREADV:
            _by_two(reader, writer, self._beat)
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
    data = os.pread(reader, _BLOCK, done)
    _write(writer, memoryview(data), done)
    return len(data)


def _by_two(reader: int, writer: int, beat: Beat) -> None:
    """Two threads, in turns of a block: one reads while the other writes, in half the time of `copy_file_range`."""
    failed = []  # type: List[BaseException]
    other = threading.Thread(target=_every_second, args=(reader, writer, _BLOCK, lambda: None, failed))
    other.start()
    _every_second(reader, writer, 0, beat, failed)
    other.join()
    if failed:
        raise failed[0]


def _every_second(reader: int, writer: int, begin: int, beat: Beat, failed: List[BaseException]) -> None:
    """Until the end of the file, or until one of the two has failed."""
    block = memoryview(bytearray(_BLOCK))
    place, next_beat = begin, _PIECE
    try:
        while not failed:
            count = _fill(reader, block, place)
            if not count:
                return
            _write(writer, block[:count], place)
            place += 2 * _BLOCK
            if place >= next_beat:
                beat()
                next_beat += _PIECE
    except BaseException as error:  # noqa: BLE001 - raised again when both have stopped
        failed.append(error)


def _fill(reader: int, block: memoryview, place: int) -> int:
    """A network's disk may give less than it has at once."""
    count = 0
    while count < len(block):
        more = _PREADV(reader, [block[count:]], place + count)
        if not more:
            break
        count += more
    return count


def _write(writer: int, data: memoryview, place: int) -> None:
    while data:
        count = os.pwrite(writer, data, place)
        data, place = data[count:], place + count
