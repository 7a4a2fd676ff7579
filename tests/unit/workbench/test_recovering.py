"""Contents of a snapshot from a far side that has different ones, fewer or none."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HostError
from holdfast.hosts.connection import PIECE
from holdfast.snapshots.manifest import encode_rows
from holdfast.snapshots.store import ObjectStore
from holdfast.workbench.records.recover_snapshot import FarSnapshot, Recovered, recover_snapshot

LARGE = bytes(range(256)) * (PIECE // 100)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Keeping:
    """A far side that keeps contents; `harm` changes what it answers for one request: sizes and body."""

    def __init__(self, contents: list[bytes], harm: Any = lambda digests, offset, answer: answer) -> None:
        self._contents, self._harm = {digest_of(each): each for each in contents}, harm
        self._answers: list[tuple[Any, bytes]] = []

    def send(self, operation: str, fields: dict[str, Any], body: bytes = b"") -> int:
        found = [self._contents.get(digest) for digest in fields["digests"]]
        contents = b"".join(each[fields["offset"] :][:PIECE] for each in found if each is not None)
        sizes = [None if each is None else len(each) for each in found]
        sizes, body = self._harm(fields["digests"], fields["offset"], (sizes, zlib.compress(contents, 1)))
        self._answers.append(({"sizes": sizes}, body))
        return len(self._answers) - 1

    def answer_with_body(self, number: int) -> tuple[Any, bytes]:
        return self._answers[number]


def manifest_of(*contents: bytes) -> bytes:
    return encode_rows((f"f{n}", "f", digest_of(each), len(each)) for n, each in enumerate(contents))


def recover(tmp_path: Path, far: Keeping, manifest: bytes) -> Recovered:
    return recover_snapshot(far, tmp_path, FarSnapshot("p", "r", digest_of(manifest)), None)  # type: ignore[arg-type] # it has what is used


def test_small_contents_and_large_ones_come_home(tmp_path):
    manifest = manifest_of(b"1", LARGE, b"")
    far = Keeping([b"1", LARGE, b"", manifest])
    assert recover(tmp_path, far, manifest) == Recovered()
    assert ObjectStore(tmp_path).read(digest_of(LARGE)) == LARGE


def test_what_the_host_has_no_more_is_counted(tmp_path):
    manifest = manifest_of(b"1", LARGE, b"2")
    assert recover(tmp_path, Keeping([manifest, b"2"]), manifest) == Recovered(missing=2)


def harm(body: Any, when: Any = lambda digests, offset: True) -> Any:
    """Another body for the answers to those requests."""
    return lambda digests, offset, answer: (answer[0], body(answer[1])) if when(digests, offset) else answer


HARMS = {
    "cut": harm(lambda body: body[:-3]),
    "too much": harm(lambda body: zlib.compress(bytes(PIECE + 1))),
    "no zlib": harm(lambda body: b"no zlib"),
    "fewer": harm(lambda body: zlib.compress(b"short"), lambda digests, offset: offset > 0),
    "nothing": harm(lambda body: zlib.compress(b""), lambda digests, offset: digests == [digest_of(LARGE)]),
}


@pytest.mark.parametrize("kind", HARMS)
@pytest.mark.parametrize("after", [[], [LARGE + b"another"]])
def test_a_far_side_that_sends_something_else_is_an_error(tmp_path, kind, after):
    manifest = manifest_of(LARGE, *after)
    with pytest.raises(HostError, match="far side"):
        recover(tmp_path, Keeping([LARGE, manifest, *after], HARMS[kind]), manifest)
    assert not ObjectStore(tmp_path).has(digest_of(LARGE))
