"""Recovering a snapshot from a host that has it: only what this project's store lacks, each content checked by its
digest. The way back of `send.py`."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import HostError
from holdfast.frozen import dataclass
from holdfast.hosts.client import Client, Reply
from holdfast.hosts.connection import PIECE, Connection
from holdfast.hosts.replies import Contents
from holdfast.snapshots.manifest import ManifestEntry, decode
from holdfast.snapshots.store import ObjectStore, is_digest
from holdfast.workbench.following.transfer import inflated

MOST_MANIFEST = 256 << 20
"""Bytes: of more than a million files."""
_MOST_IN_ONE = 2000
"""Contents asked for in one request."""
_AHEAD = 4
"""Requests that are under way at once: the connection keeps no more answers than it has room for."""


@dataclass(frozen=True)
class FarSnapshot:
    """A snapshot by its digest, and the run on the host whose stores have it."""

    project_id: str
    run_id: str
    digest: str


@dataclass(frozen=True)
class Recovered:
    """What came of it: `left` are the bytes that were too many, `missing` counts files that the host has no more."""

    left: int = 0
    missing: int = 0


def recover_snapshot(connection: Connection, objects: Path, snapshot: FarSnapshot, limit: int | None) -> Recovered:
    """More than `limit` bytes are left there. A repeat fetches nothing."""
    store = ObjectStore(objects)
    if not is_digest(snapshot.digest):
        return Recovered(missing=1)
    manifest = _manifest(connection, store, snapshot)
    if manifest is None:
        return Recovered(missing=1)
    lacking = {entry.detail: entry.size for entry in manifest if entry.kind != "l"}
    lacking = {digest: size for digest, size in lacking.items() if not store.has(digest)}
    total = sum(lacking.values())
    if limit is not None and total > limit:
        return Recovered(left=total)
    return Recovered(missing=_recover(connection, store, snapshot, lacking))


def _manifest(connection: Connection, store: ObjectStore, snapshot: FarSnapshot) -> tuple[ManifestEntry, ...] | None:
    if not store.has(snapshot.digest):
        data = bytearray()
        while True:
            answer, body = _send(connection, snapshot, _Part((snapshot.digest,), len(data))).wait_with_body()
            size, piece = answer.sizes[0] if answer.sizes else None, inflated(body)
            if size is None:
                return None
            data += piece
            if len(data) > MOST_MANIFEST:
                raise HostError(f"The far side's list of files has more than {MOST_MANIFEST >> 20} MB.", "Try again.")
            if len(data) >= size or not piece:
                break
        _keep(store, bytes(data), snapshot.digest)
    return decode(store.read(snapshot.digest))


def _recover(connection: Connection, store: ObjectStore, snapshot: FarSnapshot, lacking: dict[str, int]) -> int:
    """How many of the contents the host did not have."""
    missing = 0
    answers = _ask_ahead(connection, snapshot, _parts(lacking))
    for part, sizes, data in answers:
        if part.of == 0:
            place = 0
            for digest, size in zip(part.digests, sizes, strict=True):
                if size is None:
                    missing += 1
                    continue
                _keep(store, data[place : place + size], digest)
                place += size
        elif sizes == (None,):
            missing += part.offset == 0
        else:
            digest, _ = store.put_stream(_Pieces(part, data, answers))
            if digest != part.digests[0]:
                raise _damaged(part.digests[0])
    return missing


@dataclass(frozen=True)
class _Part:
    """One request: several whole contents, or from `offset` on a piece of one that has `of` bytes."""

    digests: tuple[str, ...]
    offset: int = 0
    of: int = 0


def _parts(lacking: dict[str, int]) -> Iterator[_Part]:
    together: list[str] = []
    room = PIECE
    for digest, size in sorted(lacking.items(), key=lambda each: each[1]):
        if size > PIECE:
            yield from (_Part((digest,), offset, size) for offset in range(0, size, PIECE))
            continue
        if together and (size > room or len(together) == _MOST_IN_ONE):
            yield _Part(tuple(together))
            together, room = [], PIECE
        together.append(digest)
        room -= size
    if together:
        yield _Part(tuple(together))


_Answer = tuple[_Part, tuple["int | None", ...], bytes]


def _ask_ahead(connection: Connection, snapshot: FarSnapshot, parts: Iterator[_Part]) -> Iterator[_Answer]:
    under_way: deque[tuple[_Part, Reply[Contents]]] = deque()
    while True:
        while len(under_way) < _AHEAD and (part := next(parts, None)) is not None:
            under_way.append((part, _send(connection, snapshot, part)))
        if not under_way:
            return
        part, reply = under_way.popleft()
        answer, body = reply.wait_with_body()
        if len(answer.sizes) != len(part.digests):
            raise HostError("The far side sent other files than those that were asked for.", "Try again.")
        yield part, answer.sizes, inflated(body)


class _Pieces:
    """A large content as a stream: its first piece, then the answers that follow."""

    def __init__(self, first: _Part, data: bytes, answers: Iterator[_Answer]) -> None:
        self._first, self._ready, self._answers = first, data, answers
        self._left = first.of - len(data)

    def read(self, size: int, /) -> bytes:
        if not self._ready and self._left > 0:
            part, _, self._ready = next(self._answers, (None, None, b""))
            if part is None or part.digests != self._first.digests:
                raise _damaged(self._first.digests[0])
            self._left -= len(self._ready)
        data, self._ready = self._ready[:size], self._ready[size:]
        return data


def _send(connection: Connection, snapshot: FarSnapshot, part: _Part) -> Reply[Contents]:
    return Client(connection).objects(snapshot.project_id, snapshot.run_id, part.digests, part.offset)


def _keep(store: ObjectStore, data: bytes, digest: str) -> None:
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damaged(digest)
    store.put_bytes(data)


def _damaged(digest: str) -> HostError:
    return HostError(f"What the far side keeps as `{digest}` is something else: it was damaged there.")
