"""The near copy of the GPU samples: read device by device, and their means over time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.farside.gpu.samples import period
from holdfast.history.gpu_series import PARTS, Series, means, read_series

BEGAN = 1_000_000_000.0
DEVICES = [{"number": 1, "uuid": "b", "name": "K80", "total": 8}, {"number": 0, "uuid": "a", "name": "K80", "total": 4}]


def tick(time: float, *rows: tuple[int, object, object]) -> dict[str, object]:
    return {"t": BEGAN + time, "d": [[*row, None, None, None, None, [], [], 0] for row in rows]}


def write(folder: Path, *lines: object) -> None:
    text = "".join(json.dumps(line) + "\n" for line in ({"format": 1, "began": BEGAN, "source": "nvml"}, *lines))
    (folder / "gpu.jsonl").write_text(text)


def read(folder: Path, *looks: object, until: float | None = None) -> Series:
    """What is read from these looks at device 0."""
    write(folder, {"devices": DEVICES[1:]}, *looks)
    (zero,) = read_series(folder, BEGAN, *(() if until is None else (BEGAN + until,)))
    return zero


def busy(series: Series, *times: float) -> list[float | None]:
    """At these times."""
    found = [[each.utilisation for each in series.points if each.since <= time < each.time] for time in times]
    return [each[0] if each else None for each in found]


def test_each_device_has_its_points_after_the_scripts_start(tmp_path):
    write(tmp_path, {"devices": DEVICES}, tick(0.5, (0, 9, 1)), tick(2, (0, 50, 2), (1, 0, 0)), tick(3, (1, None, 3)))
    zero, one = read_series(tmp_path, BEGAN + 1)
    assert (zero.number, zero.uuid, zero.total, zero.busiest, zero.fullest) == (0, "a", 4, 50.0, 2.0)
    assert busy(zero, 0.5, 1.5) == [50.0, None], "what was seen before the script began is not its affair"
    assert busy(one, 0.5, 1.5) == [0.0, None]
    assert {each.memory for each in one.points} == {0.0, 3.0}


def test_memory_that_was_not_asked_for_in_a_look_is_what_it_was(tmp_path):
    zero = read(tmp_path, tick(1, (0, 50, 7)), tick(2, (0, 50, None)))
    assert {each.memory for each in zero.points} == {7.0}


def test_of_a_long_time_without_a_look_nothing_is_known(tmp_path):
    zero = read(tmp_path, tick(1, (0, 50, 2)), tick(60, (0, 50, 2)))
    assert busy(zero, 0.5, 1.1, 30, 58.9, 59.1, 59.9) == [50.0, None, None, None, 50.0, 50.0]


def test_what_is_seen_after_the_scripts_end_is_not_drawn_into_its_time(tmp_path):
    looks = [*(tick(at, (0, 80, 2)) for at in (1, 2, 3, 4)), tick(5.0, (0, 0, 0)), tick(6.0, (0, 0, 0))]
    zero = read(tmp_path, *looks, until=4.9)
    assert zero.points[-1].time == pytest.approx(4.9)
    assert busy(zero, 0.5, 4.85) == pytest.approx([80.0, 80.0])


def test_the_time_before_the_end_without_looks_is_unknown(tmp_path):
    assert read(tmp_path, tick(1, (0, 80, 2)), tick(20, (0, 0, 0)), until=19).points[-1].time == pytest.approx(1.0)


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b'{"began": 1e999}\n', b"[1]\n" * 3, b"{" * 5000 + b"\n"])
def test_what_is_no_samples_has_no_series(tmp_path, data):
    assert read_series(tmp_path, 1.0) == ()
    (tmp_path / "gpu.jsonl").write_bytes(data)
    assert read_series(tmp_path, 1.0) == ()


BAD = [
    b"{",
    b"[" * 100_000,
    b"1,2",
    b"\xff",
    b'{"t": 1e999, "d": [[0, 1, 1]]}',
    b'{"t": "x", "d": [[0, 1, 1]]}',
    b'{"t": 1000000001.5, "d": [3, [], [null, 1, 1], ["0", 1, 1], [true, 1, 1], [1e300, 1, 1]]}',
    b'{"t": 1000000001.5, "d": 7}',
    b'{"began": "soon"}',
    b'{"devices": [1, {}, {"number": true}, {"number": 1e400}]}',
    b'{"skipped": -1e308}',
    b'{"x": "' + b"y" * 200_000 + b'"}',
]


@pytest.mark.parametrize("line", BAD, ids=range(len(BAD)))
def test_one_line_that_makes_no_sense_does_not_hide_the_others(tmp_path, line):
    write(tmp_path, {"devices": DEVICES[1:]}, tick(1, (0, 50, 2)))
    with (tmp_path / "gpu.jsonl").open("ab") as target:
        target.write(line + b"\n" + json.dumps(tick(2, (0, 70, 2))).encode() + b"\n" + b'{"t": 1000000003, "d": [[0, 9')
    (zero,) = read_series(tmp_path, BEGAN)
    assert busy(zero, 0.5, 1.5, 2.5) == [50.0, 70.0, None]


def test_devices_of_which_no_line_came_home_are_shown_by_their_number(tmp_path):
    write(tmp_path, tick(1, (3, 50, 2)))
    (three,) = read_series(tmp_path, BEGAN)
    assert (three.number, three.uuid, three.total, three.busiest) == (3, "", None, 50.0)


def test_a_run_of_days_is_kept_in_as_little_as_one_of_minutes(tmp_path):
    times = [0.0]
    while times[-1] < 200_000:
        times.append(times[-1] + period(times[-1]))
    zero = read(tmp_path, *(tick(at, (0, 100 * (place % 2), int(at))) for place, at in enumerate(times)))
    assert (zero.busiest, zero.fullest, len(zero.points)) == (100.0, times[-1], PARTS)
    halves = means([(each.since, each.time, each.memory) for each in zero.points], times[-1], 2)
    assert halves == pytest.approx([50_000, 150_000], rel=0.01)
    (use,) = means([(each.since, each.time, each.utilisation) for each in zero.points], times[-1], 1)
    assert use == pytest.approx(50, abs=1)


def test_means_are_weighted_by_time_and_unknown_where_nothing_is_known():
    assert means([(0, 1, 100.0), (1, 2, 0.0), (2, 3, None), (4, 8, 10.0)], 8.0, 4) == [50.0, None, 10.0, 10.0]
    assert means([(0, 4, 10.0), (4, 5, 50.0)], 6.0, 1) == pytest.approx([18.0])
    assert means([], 1.0, 2) == [None, None]
    assert means([(0, 1, 1.0)], 0.0, 2) == [None, None]
