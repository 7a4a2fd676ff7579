"""Several processes fetch the same file of a run at once, and parts change: each file that is put in place is
complete."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.hosts.connection import Push
from holdfast.workbench.following.transfer import STALE, FarRun, Receiver, WantedFile
from kit.speaking import Speaking

NAME = "work/model.bin"
CONTENT = b"0123456789" * 10


class Honest(Speaking):
    """A far side with one file, which it sends from where the part at home ends, ten bytes at a time."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self._content = content
        self._pushes: Iterator[Push] = iter(())
        self.begins: list[int] = []

    def request(self, operation: str, fields: dict[str, Any]) -> Any:
        self._pushes = iter([push for path, length, digest in fields["files"] for push in self._stream(length, digest)])
        return {"files": 1, "alive": None}

    def next_push(self, timeout: float | None) -> Push | None:
        return next(self._pushes, None)

    def _stream(self, length: int, digest: str) -> Iterator[Push]:
        begin = length if hashlib.sha256(self._content[:length]).hexdigest() == digest else 0
        self.begins.append(begin)
        for offset in range(begin, len(self._content), 10):
            yield Push("piece", "r", NAME, offset, self._content[offset : offset + 10])
        end = {"sha256": hashlib.sha256(self._content).hexdigest(), "mtime_ns": 1, "steady": True}
        yield Push("whole", "r", NAME, len(self._content), json.dumps(end).encode())


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return tmp_path / "run" / ".incoming"


def fetch(parts: Path, target: Path, far: Any) -> tuple[Receiver, Any]:
    receiver = Receiver(far, FarRun("p", "r", True), parts)
    return receiver, receiver.receive([WantedFile(NAME, target, len(CONTENT), target.parent)])


@pytest.mark.parametrize("steps", [1, 3, 9])
def test_two_who_fetch_one_file_at_once_both_get_it_whole(parts, tmp_path, steps):
    first, pieces = fetch(parts, tmp_path / "one" / "x", Honest())
    for _ in range(steps):
        next(pieces)
    second, others = fetch(parts, tmp_path / "two" / "x", Honest())
    next(others)
    next(pieces)
    list(others)
    list(pieces)
    assert (first.errors, second.errors) == ([], [])
    assert (tmp_path / "one" / "x").read_bytes() == CONTENT
    assert (tmp_path / "two" / "x").read_bytes() == CONTENT
    assert not [each for each in parts.parent.iterdir() if each.is_dir()]


def test_what_is_left_of_a_broken_attempt_is_for_one_at_a_time(parts, tmp_path):
    _, broken = fetch(parts, tmp_path / "x", Honest())
    next(broken), next(broken)
    broken.close()
    far, other = Honest(), Honest()
    _, pieces = fetch(parts, tmp_path / "one", far)
    next(pieces)
    list(fetch(parts, tmp_path / "two", other)[1])
    list(pieces)
    assert (far.begins, other.begins) == ([20], [0])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes() == CONTENT


def spoil(part: Path) -> None:
    with part.open("r+b") as file:
        file.write(b"other")


@pytest.mark.parametrize("harm", [Path.unlink, spoil, lambda part: os.truncate(part, 3)])
def test_what_is_on_the_disk_counts_not_what_came(parts, tmp_path, harm):
    _, broken = fetch(parts, tmp_path / "x", Honest())
    next(broken)
    broken.close()
    far = Honest()
    receiver, pieces = fetch(parts, tmp_path / "x", far)
    next(pieces)
    harm(next(parts.iterdir()))
    list(pieces)
    assert receiver.errors == []
    assert far.begins == [10, 0]
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_a_file_that_lost_its_part_twice_is_an_error_and_no_empty_file(parts, tmp_path):
    receiver, pieces = fetch(parts, tmp_path / "x", Honest())
    for _ in pieces:
        for part in parts.iterdir():
            part.unlink()
    assert len(receiver.errors) == 1 and f"`{NAME}`" in receiver.errors[0]
    assert not (tmp_path / "x").exists()


def test_a_disk_that_takes_a_piece_in_part_gets_the_rest(parts, tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))
    list(fetch(parts, tmp_path / "x", Honest())[1])
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_what_a_killed_process_left_of_its_own_is_removed_after_a_day(parts, tmp_path):
    for name, age in (("old", 2 * STALE), ("young", 60)):
        folder = parts.with_name(f".incoming-{name}")
        folder.mkdir(parents=True)
        (folder / "part").write_bytes(b"x")
        os.utime(folder, (time.time() - age,) * 2)
    list(fetch(parts, tmp_path / "x", Honest())[1])
    assert [each.name for each in parts.parent.iterdir() if each.is_dir()] == [".incoming-young"]
