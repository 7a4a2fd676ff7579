"""A run's metrics: read from the files of its processes, whatever they contain."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StorageError
from holdfast.history.metrics import MetricSummary, final_values, records, summarize


def line(time: float, value: Any, name: str = "loss", step: int | None = None, **more: Any) -> bytes:
    return json.dumps({"t": time, "n": name, "v": value, "s": step, **more}).encode() + b"\n"


def write(folder: Path, process: str, *lines: bytes) -> None:
    (folder / f"{process}.jsonl").write_bytes(b"".join(lines))


def values(folder: Path) -> list[Any]:
    return [value for _, _, value, _ in records(folder / "1-a.jsonl")]


def test_a_run_without_metrics_has_none(tmp_path):
    assert summarize(tmp_path / "metrics") == {}


def test_points_keep_time_value_and_step(tmp_path):
    write(tmp_path, "1-a", line(1.5, 0.5, step=3), line(2.5, "text", "note"))
    assert list(records(tmp_path / "1-a.jsonl")) == [(1.5, "loss", 0.5, 3), (2.5, "note", "text", None)]


@pytest.mark.parametrize(
    ("first", "second", "last"),
    [
        ([(1, 10), (4, 40)], [(2, 20), (5, 50)], 50),
        ([(1, 10), (3, 30)], [(3, 31)], 31),
        ([(10, "a"), (4, "b")], [(3, "d"), (11, "f")], "f"),
        ([(10, "before"), (4, "after")], [(9, "other")], "after"),
    ],
    ids=["by time", "equal times by file", "a clock that was set back", "a clock that was set back at the end"],
)
def test_the_last_value_of_several_processes_is_the_latest(tmp_path, first, second, last):
    for process, points in (("2-b", second), ("1-a", first)):
        write(tmp_path, process, *(line(time, value) for time, value in points))
    assert final_values(tmp_path) == {"loss": last}


@pytest.mark.parametrize(
    "bad",
    [
        b'{"t": 1, "n": "lo\n',
        b"\xff\xfe\n",
        b"null\n",
        b"[1, 2]\n",
        b"{}\n",
        b"[" * 100_000 + b"\n",
        b"1" * 5000 + b"\n",
        line(2, None),
        line(2, {"a": 1}),
        line(2, ["text"]),
        line(2, [[1, None]]),
        line(2, "nan", f=1),
        b'{"t": "2", "n": "loss", "v": 1, "s": null}\n',
        b'{"t": 2, "n": 3, "v": 1, "s": null}\n',
        b'{"t": 2, "n": "loss", "v": 1, "s": 1.5}\n',
        b'{"t": 2, "n": "loss", "v": [1\n',
    ],
    ids=lambda each: each[:30].decode("ascii", "replace"),
)
def test_a_bad_line_in_the_middle_is_skipped(tmp_path, bad):
    write(tmp_path, "1-a", line(1, 1), bad, line(3, 3))
    assert values(tmp_path) == [1, 3]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([line(1, 1), line(2, 2)[:-1]], [1]),
        ([b'{"t": 1, "n": "loss", "s": null, "v": [1\n', b"2]}\n", line(3, 3)], [3]),
        ([line(1, 1), b"\0" * 5000 + line(2, 2), b"\0\0\n", b"\n", line(3, 3)], [1, 2, 3]),
        ([line(1, 0.5, unit="m")], [0.5]),
    ],
    ids=["a torn last line", "damage that fits together", "NUL bytes of a crash", "a key of a later version"],
)
def test_what_is_whole_is_read_and_nothing_is_made_up(tmp_path, lines, found):
    write(tmp_path, "1-a", *lines)
    (tmp_path / "1-a.jsonl.partial").write_bytes(line(9, 9))
    assert values(tmp_path) == found


def test_values_that_json_cannot_hold_come_back(tmp_path):
    write(tmp_path, "1-a", line(1, ["NaN", [1, "-Infinity"]], f=1), line(2, "Infinity", f=1), line(3, "Infinity"))
    nested, infinite, text = values(tmp_path)
    assert math.isnan(nested[0]) and nested[1] == [1, -math.inf]
    assert infinite == math.inf
    assert text == "Infinity"


def test_a_summary_is_made_over_all_processes(tmp_path):
    write(tmp_path, "1-a", line(1, 0.5, step=1), line(4, 0.25, step=4))
    write(tmp_path, "2-b", line(2, 0.75, step=2), line(3, 0.125, step=3), line(5, "a", "name"), line(6, "b", "name"))
    assert summarize(tmp_path) == {
        "loss": MetricSummary("loss", 0.25, 0.125, 0.75, 4, 4),
        "name": MetricSummary("name", "b", None, None, 2, None),
    }


def test_minimum_and_maximum_leave_out_what_is_not_a_number(tmp_path):
    kinds: list[Any] = [True, "text", [9, 9], 3, 1]
    write(tmp_path, "1-a", line(1, "NaN", f=1), *(line(2, kind) for kind in kinds), line(3, "NaN", f=1))
    summary = summarize(tmp_path)["loss"]
    assert (summary.minimum, summary.maximum, summary.count) == (1, 3, 7)
    assert isinstance(summary.last, float) and math.isnan(summary.last)


def test_tables_have_the_last_value_of_each_metric(tmp_path):
    write(tmp_path, "1-a", line(1, 1), line(2, 2), line(3, 0.9, "accuracy"), line(4, [1, 2], "curve"))
    assert final_values(tmp_path) == {"loss": 2, "accuracy": 0.9, "curve": [1, 2]}


def test_a_file_larger_than_a_batch_is_read_whole(tmp_path):
    write(tmp_path, "1-a", *(line(step, step * 0.5, step=step) for step in range(10_000)), b"bad\n", line(1, 7.0))
    assert values(tmp_path) == [*(step * 0.5 for step in range(10_000)), 7.0]
    assert summarize(tmp_path)["loss"].count == 10_001


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "1-a.jsonl").mkdir()
    with pytest.raises(StorageError, match=r"1-a\.jsonl` cannot be read: Is a directory") as caught:
        summarize(tmp_path)
    assert "ls -ld" in caught.value.hint
