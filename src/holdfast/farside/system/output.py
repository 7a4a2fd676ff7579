"""Collecting a process's output: from a pipe to an append-only file, with the values of secrets taken out."""

import errno
import fcntl
import json
import os
from typing import Callable, Iterable, List, Optional, Set, Tuple

from holdfast.farside.system.files import renewed
from holdfast.farside.system.nofollow import open_plain

MASK = b"***"
SHORTEST_SECRET = 4
_MOST_HELD = 1 << 16
_PIPE_SIZE = 1 << 20
_SET_PIPE_SIZE = 1031


class Redactor:
    """Masks values in a stream. A value may be cut by the stream's blocks, begin another or overlap it: what is not
    decided yet is held back. Each line of a value of several lines counts, and its form in JSON."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted(_forms(values))
        self._longest = max([len(value) for value in self._values] or [0])
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if not self._values:
            return data
        data = self._held + data
        spans = self._spans(data)
        end = self._undecided(data)
        for begin, stop in spans:
            if begin < end < stop:
                end = begin
        if len(data) - end > _MOST_HELD:
            end = len(data) - self._longest
        self._held = data[end:]
        return self._masked(data[:end], spans)

    def finish(self) -> bytes:
        held, self._held = self._held, b""
        return self._masked(held, self._spans(held))

    def _spans(self, data: bytes) -> List[Tuple[int, int]]:
        """Where values stand, overlapping ones joined."""
        found = []
        for value in self._values:
            place = data.find(value)
            while place >= 0:
                found.append((place, place + len(value)))
                place = data.find(value, place + 1)
        joined: List[Tuple[int, int]] = []
        for begin, stop in sorted(found):
            if joined and begin < joined[-1][1]:
                joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
            else:
                joined.append((begin, stop))
        return joined

    def _undecided(self, data: bytes) -> int:
        """Where the longest tail begins that is a proper beginning of a value."""
        for begin in range(max(0, len(data) - self._longest + 1), len(data)):
            tail = data[begin:]
            if any(len(tail) < len(value) and value.startswith(tail) for value in self._values):
                return begin
        return len(data)

    @staticmethod
    def _masked(data: bytes, spans: List[Tuple[int, int]]) -> bytes:
        parts, place = [], 0
        for begin, stop in spans:
            if begin >= len(data):
                break
            parts += [data[place:begin], MASK]
            place = stop
        return b"".join(parts) + data[place:]


def _forms(values: Iterable[str]) -> Set[bytes]:
    found: Set[bytes] = set()
    for value in values:
        forms = [value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]] + value.splitlines()
        found.update(form.encode("utf-8", "surrogateescape") for form in forms)
    return {form for form in found if len(form) >= SHORTEST_SECRET}


class Pump:
    """Moves what arrives in `pipe` to the file at `path`. Never loses a byte: on a full disk it keeps what it read
    and stops reading, so that the writer waits; `blocked` says so."""

    def __init__(self, pipe: int, path: str, redactor: Redactor, moved: Optional[Callable[[], None]] = None) -> None:
        self.pipe = pipe
        self._moved = moved
        self.open = True
        self.blocked = ""
        self._path = path
        self._file = open_plain(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._redactor = redactor
        self._pending = b""
        os.set_blocking(pipe, False)

    def move(self) -> bool:
        """Move what is there. True if something moved; `open` becomes False when every writer has closed its end."""
        if self._pending and not self._write():
            return False
        moved = False
        for _ in range(16):
            try:
                data = os.read(self.pipe, 1 << 18)
            except BlockingIOError:
                break
            if not data:
                self.open = False
                break
            moved = True
            self._pending = self._redactor.feed(data)
            if not self._write():
                break
        if moved and self._moved is not None:
            self._moved()
        return moved

    def keep(self) -> None:
        """Put the file back if it was taken. Where there is no room, it goes on as it is."""
        try:
            self._file = renewed(self._file, self._path)
        except OSError:
            pass

    def finish(self) -> int:
        """Take what is still in the pipe and what was held back, close the file. Returns how many bytes were lost."""
        while self.move():
            pass
        self._pending += self._redactor.finish()
        self._write()
        self.keep()
        os.close(self._file)
        self.open = False
        return len(self._pending)

    def _write(self) -> bool:
        while self._pending:
            try:
                count = os.write(self._file, self._pending)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                self.blocked = error.strerror or "the disk is full"
                return False
            self._pending = self._pending[count:]
        self.blocked = ""
        return True


def make_pipe() -> List[int]:
    """A pipe with room for a megabyte where the system allows it, so that bursts do not wait for the reader."""
    reader, writer = os.pipe()
    widen(writer)
    return [reader, writer]


def make_fifo(path: str) -> List[int]:
    """The same by a name in a folder, for a writer that cannot inherit it."""
    os.mkfifo(path, 0o600)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    writer = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    widen(writer)
    return [reader, writer]


def widen(pipe: int) -> None:
    """Let the pipe hold a megabyte: the writer makes the next one while the reader still takes this one. Where it is no
    pipe, or not allowed, it stays as it is."""
    try:
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_SIZE)
    except OSError:
        pass
