"""Collecting a process's output: from a pipe to an append-only file, with the values of secrets taken out."""

import errno
import fcntl
import os
from typing import Callable, Iterable, List, Optional

MASK = b"***"
SHORTEST_SECRET = 4
_PIPE_SIZE = 1 << 20
_SET_PIPE_SIZE = 1031


class Redactor:
    """Replaces values in a stream. A value may be cut by the stream's blocks: a tail that could be the start of one
    is held back until it is decided."""

    def __init__(self, values: Iterable[str]) -> None:
        encoded = {value.encode("utf-8", "surrogateescape") for value in values}
        self._values = sorted((value for value in encoded if len(value) >= SHORTEST_SECRET), key=len, reverse=True)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if not self._values:
            return data
        data = self._held + data
        for value in self._values:
            data = data.replace(value, MASK)
        keep = self._undecided(data)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def finish(self) -> bytes:
        held, self._held = self._held, b""
        return held

    def _undecided(self, data: bytes) -> int:
        """Length of the longest tail that is a proper beginning of a value."""
        longest = min(len(data), max(len(value) for value in self._values) - 1)
        for length in range(longest, 0, -1):
            tail = data[-length:]
            if any(value.startswith(tail) for value in self._values):
                return length
        return 0


class Pump:
    """Moves what arrives in `pipe` to the file at `path`. Never loses a byte: on a full disk it keeps what it read
    and stops reading, so that the writer waits; `blocked` says so."""

    def __init__(self, pipe: int, path: str, redactor: Redactor, moved: Optional[Callable[[], None]] = None) -> None:
        self.pipe = pipe
        self._moved = moved
        self.open = True
        self.blocked = ""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
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

    def finish(self) -> int:
        """Take what is still in the pipe and what was held back, close the file. Returns how many bytes were lost."""
        while self.move():
            pass
        self._pending += self._redactor.finish()
        self._write()
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
    try:
        fcntl.fcntl(writer, _SET_PIPE_SIZE, _PIPE_SIZE)
    except OSError:
        pass
    return [reader, writer]
