"""What a follower gets of a run's files: from which offset, and in which order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.operations.subscription import Subscription
from holdfast.farside.system.digests import HEAD, TAIL, prefix_checksum

OUTPUT, JOURNAL = "driver_log", "journal.jsonl"
STARTED, ENDED = b'{"t":1,"e":"started"}\n', b'{"t":2,"e":"ended","reason":"completed"}\n'


def checksum(path: Path, length: int) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return prefix_checksum(descriptor, length)
    finally:
        os.close(descriptor)


def pushed(subscription: Subscription) -> list[tuple[str, str, int, bytes]]:
    """What one look sends."""
    found = []

    def send(message: dict[str, Any], body: bytes) -> None:
        found.append((message["push"], message["file"], message.get("offset", 0), body))

    subscription.push(send)
    return found


def test_the_end_of_a_run_is_sent_after_all_of_its_output(tmp_path: Path) -> None:
    (tmp_path / OUTPUT).write_bytes(b"one\n")
    (tmp_path / JOURNAL).write_bytes(STARTED)
    subscription = Subscription(str(tmp_path), "r_1", {})
    sent = []

    def send(message: dict[str, Any], body: bytes) -> None:
        sent.append((message["file"], body))
        if body == b"one\n":  # the script writes its last line, and ends, while this is sent
            (tmp_path / OUTPUT).write_bytes(b"one\ntwo\n")
            (tmp_path / JOURNAL).write_bytes(STARTED + ENDED)

    subscription.push(send)
    assert not subscription.ended
    subscription.push(send)
    assert subscription.ended
    assert sent == [(OUTPUT, b"one\n"), (JOURNAL, STARTED), (OUTPUT, b"two\n"), (JOURNAL, ENDED)]


def test_a_follower_gets_what_it_does_not_have(tmp_path: Path) -> None:
    (tmp_path / OUTPUT).write_bytes(b"one\ntwo\n")
    have = {OUTPUT: (4, checksum(tmp_path / OUTPUT, 4))}
    assert pushed(Subscription(str(tmp_path), "r_1", have)) == [("data", OUTPUT, 4, b"two\n")]


@pytest.mark.parametrize("there", [b"else\ntwo\n", b"one"])
def test_a_follower_whose_bytes_are_not_the_beginning_of_the_file_starts_it_again(tmp_path: Path, there: bytes) -> None:
    (tmp_path / "copy").write_bytes(b"one\n")
    (tmp_path / OUTPUT).write_bytes(there)
    have = {OUTPUT: (4, checksum(tmp_path / "copy", 4))}
    assert pushed(Subscription(str(tmp_path), "r_1", have)) == [("restart", OUTPUT, 0, b""), ("data", OUTPUT, 0, there)]


def test_a_file_that_is_begun_again_while_it_is_followed_is_sent_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / OUTPUT).write_bytes(b"one\n")
    subscription = Subscription(str(tmp_path), "r_1", {})
    pushed(subscription)
    (tmp_path / OUTPUT).write_bytes(b"new\nmore\n")
    assert pushed(subscription) == [("restart", OUTPUT, 0, b""), ("data", OUTPUT, 0, b"new\nmore\n")]


@pytest.mark.parametrize("place", [0, HEAD - 1, HEAD + TAIL // 2, HEAD + TAIL - 1])
def test_damage_at_the_beginning_and_at_the_end_of_a_long_copy_is_noticed(tmp_path: Path, place: int) -> None:
    content = bytearray(b"x" * (HEAD + TAIL))
    (tmp_path / "there").write_bytes(content)
    content[place] = 0
    (tmp_path / "copy").write_bytes(content)
    assert checksum(tmp_path / "there", len(content)) != checksum(tmp_path / "copy", len(content))
    assert checksum(tmp_path / "copy", len(content) + 1) == -1
