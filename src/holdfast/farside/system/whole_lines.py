"""Whole lines of bytes that come in pieces, also of a file that grows and that somebody else writes."""

from typing import BinaryIO, Iterator, List

LONGEST = 16 << 20
"""Bytes of a line. The longest that is written names every output of a run."""
PIECE = 1 << 20


class WholeLines:
    """Keeps what is not a whole line yet. A line longer than `longest` is dropped while it comes, and counted."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest: List[bytes] = []
        self._length = 0
        self._is_dropping = False
        self.dropped = 0

    def feed(self, data: bytes) -> List[bytes]:
        """The lines that are whole now, without their ends."""
        first, end, others = data.partition(b"\n")
        self._keep(first)
        if not end:
            return []
        found = [] if self._is_dropping else [b"".join(self._rest)]
        self.dropped += self._is_dropping
        self._rest, self._length, self._is_dropping = [], 0, False
        lines = others.split(b"\n")
        self._keep(lines.pop())
        return found + lines

    def _keep(self, data: bytes) -> None:
        self._length += len(data)
        if self._length > self._longest:
            self._rest, self._is_dropping = [], True
        elif data:
            self._rest.append(data)


def pieces(source: BinaryIO) -> Iterator[bytes]:
    while True:
        data = source.read(PIECE)
        if not data:
            return
        yield data
