"""What a program says on stderr, read by a thread of its own: always, so that the program never waits. Only the end is
kept, however much it says."""

from __future__ import annotations

import threading
from typing import IO

KEPT, _LINES = 1 << 16, 40
"""Bytes and lines, the last ones."""


class Complaints:
    """`heard` is set once `awaited` was among them."""

    def __init__(self, stream: IO[bytes] | None, awaited: bytes = b"") -> None:
        self.kept = b""
        self.heard = threading.Event()
        self._stream, self._awaited = stream, awaited
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def text(self) -> str:
        """The last lines."""
        lines = self.kept.decode("utf-8", "replace").strip().splitlines(keepends=True)
        return "".join(lines[-_LINES:])

    def join(self, patience: float) -> None:
        """Wait for the end, but not longer than `patience` seconds: another process may keep the pipe open."""
        self._reader.join(patience)

    def _read(self) -> None:
        if self._stream is None:
            return
        with self._stream as stream:
            while data := stream.read1(1 << 16):  # type: ignore[attr-defined] # it is buffered
                said = self.kept + data
                if self._awaited and self._awaited in said:
                    self.heard.set()
                self.kept = said[-KEPT:]
