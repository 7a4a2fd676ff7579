"""Sending a snapshot to a host that does not share this disk: only what it lacks, requests pipelined."""

from __future__ import annotations

from pathlib import Path

from holdfast.hosts.connection import PIECE, Connection
from holdfast.snapshots.manifest import decode
from holdfast.snapshots.store import ObjectStore


def send_snapshot(connection: Connection, objects: Path, snapshot: str) -> int:
    """Returns how many objects travelled. A repeat sends nothing."""
    store = ObjectStore(objects)
    manifest = decode(store.read(snapshot))
    digests = sorted({entry.detail for entry in manifest.entries if entry.kind != "l"} | {snapshot})
    missing = connection.request("missing", {"digests": digests})
    asked = [number for digest in missing for number in _put(connection, store.path_of(digest), digest)]
    for number in asked:
        connection.answer(number)
    return len(missing)


def _put(connection: Connection, path: Path, digest: str) -> list[int]:
    asked = []
    size = path.stat().st_size
    with path.open("rb") as source:
        offset = 0
        while True:
            data = source.read(PIECE)
            more = offset + len(data) < size
            asked.append(connection.send("put", {"digest": digest, "offset": offset, "more": more}, data))
            offset += len(data)
            if not more:
                return asked
