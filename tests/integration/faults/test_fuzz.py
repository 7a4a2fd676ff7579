"""The far end under hostile input: garbage, cut frames, huge lengths, hostile values. Nothing is written outside its
folder."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.system import frames
from holdfast.hosts.shipment import far_side, install

REQUESTS = 200
OPERATIONS = [
    "hello", "environments", "prepare", "pack", "put", "start", "give-up", "follow", "cancel", "list", "stream", "link",
    "remove",
    "", "x",
]  # fmt: skip
KEYS = [
    "project", "run", "generation", "plan", "runs", "have", "digest", "digests", "path", "root", "destination",
    "offset", "more", "stay", "environment", "stores", "grace", "detail", "snapshot", "base", "count", "z", "roots",
    "files", "submission", "configuration",
]  # fmt: skip


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Path]:
    """A host's folder, and a file beside it that must not change."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    yield tmp_path / "home"
    assert (tmp_path / "precious" / "file").read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home", "precious"]


def _talk(home: Path, data: bytes) -> tuple[int, list[tuple[dict[str, Any], bytes]], str]:
    """Send bytes to a far side and close; returns its exit code, its answers and what it said on stderr."""
    entry = install(far_side(home), home) / "holdfast" / "farside" / "main.py"
    argv = [sys.executable, "-I", "-S", str(entry), "serve", str(home), "nonce"]
    done = subprocess.run(argv, input=data, capture_output=True, timeout=60, cwd=home)
    stream = iter([done.stdout.partition(frames.marker("nonce"))[2]])
    rest = bytearray(next(stream))

    def read(size: int) -> bytes:
        taken = bytes(rest[:size])
        del rest[:size]
        return taken

    answers = []
    while (frame := frames.decode(read)) is not None:
        answers.append(frame)
    return done.returncode, answers, done.stderr.decode()


def _hostile(chance: random.Random, home: Path, depth: int = 0) -> Any:
    plain = [
        None, True, -1, 0, 1 << 70, 1.5, "", ".", "..", "/", "../precious", "../../precious/file", "a/../../precious",
        str(home.parent / "precious" / "file"), "p", "r", "a" * 64, "../" * 21 + "x",
        "\0", "x\0y", "\ud800", "-rf", "~",
        "work/../../../precious", "lock", "plan.json",
    ]  # fmt: skip
    kind = chance.random()
    if depth < 2 and kind < 0.15:
        return [_hostile(chance, home, depth + 1) for _ in range(chance.randrange(4))]
    if depth < 2 and kind < 0.35:
        return {chance.choice(KEYS): _hostile(chance, home, depth + 1) for _ in range(chance.randrange(6))}
    return chance.choice(plain)


@pytest.mark.moments("requests")
def test_hostile_requests_are_answered_and_touch_nothing_outside(far, moment):
    far.mkdir()
    chance = moment.chance
    requests = []
    for number in range(REQUESTS):
        message = {key: _hostile(chance, far) for key in chance.sample(KEYS, chance.randrange(len(KEYS)))}
        message.update({"id": number, "op": chance.choice(OPERATIONS)})
        requests.append(frames.encode(message, chance.randbytes(chance.choice([0, 0, 10, 5000]))))
    code, answers, said = _talk(far, b"".join(requests))
    assert code == 0, said
    assert sorted(message["id"] for message, _ in answers if "id" in message) == list(range(REQUESTS))
    assert "Traceback" not in said


@pytest.mark.moments("noise", "cut frame", "huge length", "wrong sum", "flipped bytes")
def test_garbage_cut_frames_and_huge_lengths_end_the_far_side_with_one_line(far, moment):
    far.mkdir()
    chance = moment.chance
    good = frames.encode({"id": 1, "op": "hello"})
    bad = {
        "noise": chance.randbytes(chance.randrange(1, 3000)),
        "cut frame": good[: chance.randrange(1, len(good))],
        "huge length": struct.pack(">4sIII", frames.MAGIC, 0xFFFFFFFF, 0xFFFFFFFF, 0) + b"x" * 100,
        "wrong sum": struct.pack(">4sIII", frames.MAGIC, 10, 0, 7) + b"{}        ",
        "flipped bytes": bytes(chance.randrange(256) if chance.random() < 0.05 else each for each in good * 3),
    }[moment.stage]
    code, answers, said = _talk(far, good + bad)
    assert answers[0][0]["ok"]["uid"] == os.getuid(), "what came before the damage was answered"
    assert code in (0, 1)
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 1
