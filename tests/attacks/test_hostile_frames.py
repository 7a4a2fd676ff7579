"""Row 9, over the wire: the frames of a real far side, each changed in one place before it is read. No command ends
with an internal error, and none hangs."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ExitCode
from holdfast.farside.system import frames
from kit.fuzzing import HUGE, by_type
from kit.soaking import seeds

WORST = ("null", "7", "-1", HUGE, "NaN", '"\\ud800"', '"../../x"', '""', "[]", "{}", "[" * 400 + "]" * 400, "1e999")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("experiment", "status", "-r", "last"),
    ("experiment", "logs", "-r", "last", "-f"),
    ("history", "import", "-t", "local"),
    ("computetarget", "gpus", "local"),
    ("computetarget", "check", "local"),
    ("computetarget", "show", "local"),
    ("environment", "list", "-t", "local"),
    ("experiment", "stacks", "-r", "last"),
    ("experiment", "cancel", "-r", "last"),
)


class Liar:
    """Reads frames as they are, but for one: that one has an odd value in one place."""

    def __init__(self, turn: int, chance: random.Random) -> None:
        self._left, self._chance, self._decode = turn, chance, frames.decode
        self.said = b""

    def decode(self, read: Callable[[int], bytes]) -> Any:
        frame = self._decode(read)
        if frame is None:
            return None
        self._left -= 1
        if self._left != 0:
            return frame
        message, body = frame
        kept = {name: message[name] for name in ("id", "push") if name in message and self._chance.random() < 0.8}
        self.said = self._chance.choice(list(by_type(message, WORST)))
        try:
            odd = json.loads(self.said)
        except (ValueError, RecursionError):
            raise frames.FrameError("a frame's header is not JSON") from None
        if not isinstance(odd, dict):
            raise frames.FrameError("a frame's header is not an object")
        return {**odd, **kept}, body


@pytest.fixture
def lied_to(bench, command, monkeypatch) -> Callable[[int, int, tuple[str, ...]], bool]:
    """`lied_to(turn, seed, words)`: one command, which hears an odd frame in this turn. False if it heard fewer."""
    bench.write(
        "t.py",
        """
        import os, holdfast
        holdfast.log("loss", 0.5)
        open("outputs/a.txt", "w").write("a")
        print("hello")
        """,
    )
    assert bench.submit("t.py").code == 0
    monkeypatch.chdir(bench.root)
    runs = bench.root / ".holdfast" / "runs"
    (folder,) = (each for each in runs.iterdir() if each.is_dir())
    kept = bench.root.parent / "kept"
    shutil.copytree(folder, kept, symlinks=True)

    def ask(turn: int, seed: int, words: tuple[str, ...]) -> bool:
        _as_before(folder, kept, is_imported="import" in words)
        liar = Liar(turn, random.Random(seed))
        with monkeypatch.context() as lying:
            lying.setattr(frames, "decode", liar.decode)
            outcome = command(*words)
        about = (words, turn, liar.said[:400], outcome.err[-1500:])
        assert outcome.code != ExitCode.INTERNAL, about
        assert "Traceback" not in outcome.err and "internal error" not in outcome.err, about
        return liar.said != b""

    return ask


def _as_before(folder: Path, kept: Path, is_imported: bool) -> None:
    """The run at home as it was while it ran, or not at all."""
    shutil.rmtree(folder, ignore_errors=True)
    if is_imported:
        return
    shutil.copytree(kept, folder, symlinks=True)
    for name in ("collected.json", "journal.jsonl", "driver_log"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "outputs", ignore_errors=True)


def test_no_command_ends_with_an_internal_error_whatever_a_far_side_says(lied_to):
    lies = Counter[tuple[str, ...]]()
    for words in COMMANDS:
        for seed in range(5):
            lies[words] += lied_to(1 + seed % 4, seed, words)
    assert min(lies[words] for words in COMMANDS) >= 2, lies


@pytest.mark.soak
@pytest.mark.time_limit(1200, "hears odd frames for ten minutes")
def test_no_command_ends_with_an_internal_error_in_ten_minutes_of_odd_frames(request, lied_to, capfd):
    count = 0
    for seed in seeds(request, 600):
        for words in COMMANDS:
            lied_to(1 + seed % 12, seed, words)
            count += 1
    with capfd.disabled():
        print(f"\nHostile frames: {count} cases, 0 crashes")
