"""Row 9, from end to end: whatever lies in a run's folder, and whatever a far side says, no command ends with an
internal error."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.errors import ExitCode
from kit.fuzzing import HUGE, ODD, by_bytes, by_type, by_type_in_lines
from kit.near_readers import JOURNAL, METRICS, SAMPLES
from kit.soaking import seeds

RUN = "iris_1521077190506"
FILES: dict[str, bytes] = {
    "journal.jsonl": JOURNAL,
    "metrics/7-aa.jsonl": METRICS,
    "gpu.jsonl": SAMPLES,
    "submission.json": b"",
    "plan.json": b'{"format": 1, "environment": {"spec": "a", "exact": true}, "secrets": ["A"]}',
    "configuration.json": b'{"run": {"Framework": "a"}, "run_configuration": {"environment_variables": {"A": "b"}}}',
    "host.json": b'{"machine": "m", "folder": "f", "node": "n", "clock_offset": 2.5}',
    "collected.json": b'{"format": 1, "notes": ["n"], "outputs_left": false}',
    "abandoned.json": b'{"format": 1, "t": 1521077190.5, "why": "no answer"}',
    "environment.json": b'{"format": 1, "spec": "s", "platform": "p", "python": "3.11.2", "requirements": ""}',
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("history", "list"),
    ("history", "list", "-o", "json"),
    ("history", "list", "--query", "[?loss != null].run_id"),
    ("history", "last"),
    ("history", "info", "-r", RUN),
    ("history", "info", "-r", RUN, "-o", "json"),
    ("history", "compare", RUN, "iris_1521077190507"),
    ("history", "compare", RUN, "iris_1521077190507", "-o", "json"),
    ("history", "rebuild"),
    ("history", "download", "-r", RUN, "-d", "fetched", "--overwrite"),
    ("project", "restore", "-r", RUN, "-d", "restored"),
    ("experiment", "logs", "-r", RUN),
    ("experiment", "logs", "-r", RUN, "--control"),
    ("experiment", "status", "-r", RUN),
    ("experiment", "status", "-r", RUN, "-o", "json"),
    ("experiment", "diagnostics", "-r", RUN, "--file", "report.zip"),
)


@pytest.fixture
def attacked(recorded, command) -> Callable[[str, bytes], set[tuple[str, ...]]]:
    """`attacked(name, data)`: some of the commands, with this in the file. Returns which."""
    run_id, other = recorded.add(metrics=["loss"]), recorded.add(metrics=["loss"])
    assert (run_id, other) == (RUN, "iris_1521077190507")
    folder: Path = recorded.folders.path(RUN)
    FILES["submission.json"] = (folder / "submission.json").read_bytes()
    turn = itertools.cycle(COMMANDS)

    def attack(name: str, data: bytes) -> set[tuple[str, ...]]:
        for each, content in FILES.items():
            (folder / each).write_bytes(data if each == name else content)
        asked = {("history", "list"), next(turn)}
        for words in asked:
            outcome = command(*words)
            about = (words, name, data[:300], data[-300:], outcome.out[-500:], outcome.err[-1500:])
            assert outcome.code != ExitCode.INTERNAL, about
            assert "Traceback" not in outcome.err and "internal error" not in outcome.err, about
        return asked

    return attack


WORST = (HUGE, f"[{HUGE}]", "[" * 800 + "]" * 800, "[" * 5000 + "]" * 5000, '"\\ud800"', "NaN")


def odd_contents(
    chance: random.Random, types: int, bytes_: int, values: Sequence[str] = ODD
) -> Iterator[tuple[str, bytes]]:
    for name, content in FILES.items():
        lines = name.endswith("l")
        found = list(by_type_in_lines(content, values) if lines else by_type(json.loads(content), values))
        for data in (*chance.sample(found, min(types, len(found))), *by_bytes(content, chance, bytes_)):
            yield name, data


def test_no_command_ends_with_an_internal_error_whatever_lies_in_a_runs_folder(attacked):
    seen = set()
    for name, data in odd_contents(random.Random(3), types=20, bytes_=4, values=WORST):
        seen |= {(name, words) for words in attacked(name, data)}
    assert seen == set(itertools.product(FILES, COMMANDS)), "each command has seen each file"


@pytest.mark.soak
@pytest.mark.time_limit(1200, "writes odd files for ten minutes")
def test_no_command_ends_with_an_internal_error_in_ten_minutes_of_odd_files(request, attacked, capfd):
    count = 0
    for seed in seeds(request, 600):
        for name, data in odd_contents(random.Random(seed), types=30, bytes_=15):
            attacked(name, data)
            count += 1
    with capfd.disabled():
        print(f"\nForeign files: {count} cases, 0 crashes")
