"""Sending a snapshot to a host that does not share this disk: the manifest as what changed since the last one that it
has, then the contents that it lacks, small ones together; nothing waits for an answer that can travel with others."""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.errors import FarSideError, HostError, StorageError
from holdfast.hosts.client import Client, Reply
from holdfast.hosts.connection import PIECE, Connection
from holdfast.hosts.replies import MissingContents
from holdfast.snapshots.store import ObjectStore, damaged, digest_of_stream
from holdfast.workbench.reach import events

SMALL = 256 << 10
"""Objects up to this size travel together, larger ones in pieces of their own."""
_AT_ONCE = 1 << 20
"""Bytes that are sent without first asking whether the host has them: an answer would take longer."""
_MOST_DIFFERENCE = 3 << 20
WINDOW = 16
"""Requests that may be unanswered at once: both ends' memory is bounded."""
_WORTH = 0.95
_SAMPLE = 1 << 14


class Sender:
    """One snapshot on its way over one connection. `base`: a snapshot that the host had the last time."""

    def __init__(self, connection: Connection, store: ObjectStore, snapshot: str, base: str | None) -> None:
        self._far, self._store, self.snapshot = Client(connection), store, snapshot
        self._manifest = store.read(snapshot)
        rows = _rows(self._manifest)
        known = self._base_rows(base) if base is not None else None
        self._sizes = {row[2]: row[3] for row in rows if row[1] != "l"}
        before = {row[2] for row in known if row[1] != "l"} if known is not None else set()
        self._fresh = [digest for digest in self._sizes if digest not in before]
        self._base, self._difference = None, b""
        if known is not None and base is not None:
            difference = _difference(known, rows)
            if len(difference) <= _MOST_DIFFERENCE:
                self._base, self._difference = base, zlib.compress(difference, 6)
        self._announced: Reply[MissingContents] | None = None
        self._unanswered: deque[Reply[Any]] = deque()
        self._refused: FarSideError | None = None
        self._sent: set[str] = set()

    def announce(self, at_once: int = _AT_ONCE) -> bool:
        """Send the manifest and, if that is little (`at_once` bytes), the contents that are new in it, without waiting.
        True: it may well be that the host has everything then."""
        if self._base is None:
            self._send_manifest()
        self._announced = self._far.prepare(self.snapshot, self._base, self._difference)
        sizes = [self._sizes[digest] for digest in self._fresh]
        if sum(sizes) > at_once or max(sizes, default=0) > SMALL:
            return False
        for _ in self._send_objects(self._fresh, {}):
            pass
        return True

    def complete(self) -> Iterator[events.Sending]:
        """Take the host's answer and send what it still lacks. `confirm` says whether it arrived."""
        announced = self._announced or self._far.prepare(self.snapshot)
        answer = announced.wait()
        if answer.needs:
            self._sent.clear()  # what went before is counted in the next answer
            self._send_manifest()
            answer = self._far.prepare(self.snapshot).wait()
        lacks = self._lacking(answer)
        total, done = sum(self._sizes[digest] for digest in lacks), 0
        for size in self._send_objects(lacks, answer.parts):
            done += size
            yield events.Sending(done, total)

    def confirm(self) -> None:
        """Returns when all that was sent is stored. What the host finds damaged is damaged here, or was left over
        there by a connection that was cut and is sent once more."""
        self._take_answers(0)
        if self._refused is None:
            return
        self._require_sound(self._sent)
        self._refused = None
        self._sent.clear()
        answer = self._far.prepare(self.snapshot).wait()
        for _ in self._send_objects(self._lacking(answer), answer.parts):
            pass
        self._take_answers(0)
        if self._refused is not None:
            raise self._refused

    def _base_rows(self, base: str) -> list[list[Any]] | None:
        try:
            return _rows(self._store.read(base))
        except StorageError:
            return None  # removed here, or damaged: the whole manifest travels

    def _lacking(self, answer: MissingContents) -> list[str]:
        digests = sorted(self._sizes)
        if answer.needs:
            raise HostError("The far side does not take the snapshot's manifest.", "Try again.")
        lacks = [digest for begin, end in answer.lacks for digest in digests[begin:end]]
        return [digest for digest in lacks if digest not in self._sent]

    def _send_manifest(self) -> None:
        for begin in range(0, len(self._manifest), PIECE):
            data = self._manifest[begin : begin + PIECE]
            more = begin + PIECE < len(self._manifest)
            self._put(self.snapshot, begin, data, more)

    def _send_objects(self, digests: Iterable[str], parts: Mapping[str, int]) -> Iterator[int]:
        """Yields the sizes of what was sent, as it goes."""
        pack: list[tuple[str, bytes]] = []
        room = PIECE
        for digest in digests:
            self._sent.add(digest)
            size = self._sizes[digest]
            if size > SMALL:
                yield from self._send_pieces(digest, parts.get(digest, 0))
                continue
            if pack and size > room:
                yield self._send_pack(pack)
                pack, room = [], PIECE
            with self._store.open(digest) as source:
                pack.append((digest, source.read()))
            room -= len(pack[-1][1]) + 36
        if pack:
            yield self._send_pack(pack)

    def _send_pack(self, pack: list[tuple[str, bytes]]) -> int:
        heads = [bytes.fromhex(digest) + len(data).to_bytes(4, "big") for digest, data in pack]
        contents = [data for _, data in pack]
        body, packed = _packed(b"".join([*heads, *contents]))
        self._sending(self._far.pack(len(pack), packed, body))
        return sum(map(len, contents))

    def _send_pieces(self, digest: str, begin: int) -> Iterator[int]:
        """A large object, from where an earlier connection was cut."""
        size = self._sizes[digest]
        offset = begin if begin <= size else 0
        yield offset
        with self._store.open(digest) as source:
            source.seek(offset)
            while True:
                data = source.read(PIECE)
                more = offset + len(data) < size and bool(data)
                self._put(digest, offset, data, more)
                yield len(data)
                offset += len(data)
                if not more:
                    return

    def _put(self, digest: str, offset: int, data: bytes, more: bool) -> None:
        body, packed = _packed(data)
        self._sending(self._far.put(digest, offset, more, packed, body))

    def _sending(self, reply: Reply[Any]) -> None:
        self._unanswered.append(reply)
        self._take_answers(WINDOW)

    def _take_answers(self, left: int) -> None:
        while len(self._unanswered) > left:
            try:
                self._unanswered.popleft().wait()
            except FarSideError as error:
                if error.kind != "damaged":
                    raise
                self._refused = error  # `confirm` settles it: the others may be sound

    def _require_sound(self, digests: Iterable[str]) -> None:
        for digest in (*digests, self.snapshot):
            with self._store.open(digest) as source:
                if digest_of_stream(source) != digest:
                    raise damaged(digest, self._store.path_of(digest))


def _rows(manifest: bytes) -> list[list[Any]]:
    rows: list[list[Any]] = json.loads(manifest)["files"]  # as its digest says, it is one that we wrote
    return rows


def _difference(before: list[list[Any]], after: list[list[Any]]) -> bytes:
    old = {row[0]: row for row in before}
    rows = [row for row in after if old.get(row[0]) != row]
    paths = {row[0] for row in after}
    removed = [path for path in old if path not in paths]
    return json.dumps({"removed": removed, "rows": rows}, separators=(",", ":")).encode("ascii")


def _packed(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """Compressed if that is worth it: a sample tells, so that what cannot be compressed costs no time. Out of the
    middle, since a pack begins with digests."""
    if len(data) < 64:
        return data, {}
    sample = data[len(data) // 2 :][:_SAMPLE]
    if len(zlib.compress(sample, 1)) > _WORTH * len(sample):
        return data, {}
    return zlib.compress(data, 1), {"z": 1}
