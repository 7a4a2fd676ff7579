"""The near copy of what was seen of the GPUs: read device by device, and its means over time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.history.gpu_series import Point, means, read_series

BEGAN = 1000.0
DEVICES = [{"number": 1, "uuid": "b", "name": "K80", "total": 8}, {"number": 0, "uuid": "a", "name": "K80", "total": 4}]


def tick(time: float, *rows: tuple[int, object, object]) -> dict[str, object]:
    return {"t": BEGAN + time, "d": [[*row, None, None, None, None, [], [], 0] for row in rows]}


def write(folder: Path, *lines: object) -> None:
    text = "".join(json.dumps(line) + "\n" for line in ({"format": 1, "began": BEGAN, "source": "nvml"}, *lines))
    (folder / "gpu.jsonl").write_text(text)


def test_each_device_has_its_points_after_the_scripts_start(tmp_path):
    write(tmp_path, {"devices": DEVICES}, tick(0.5, (0, 9, 1)), tick(2, (0, 50, 2), (1, 0, 0)), tick(3, (1, None, 3)))
    zero, one = read_series(tmp_path, BEGAN + 1)
    assert (zero.number, zero.uuid, zero.total) == (0, "a", 4)
    assert zero.points == (Point(0.0, 1.0, 50.0, 2.0),), "what was seen before the script began is not its affair"
    assert one.points == (Point(0.0, 1.0, 0.0, 0.0), Point(1.0, 2.0, None, 3.0))


def test_of_a_long_time_without_a_look_nothing_is_known(tmp_path):
    write(tmp_path, {"devices": DEVICES[1:]}, tick(1, (0, 50, 2)), tick(60, (0, 50, 2)))
    (zero,) = read_series(tmp_path, BEGAN)
    assert [each.since for each in zero.points] == [0.0, 57.0]


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b'{"began": 1e999}\n', b"[1]\n" * 3, b"{" * 5000 + b"\n"])
def test_what_is_no_samples_has_no_series(tmp_path, data):
    assert read_series(tmp_path, 1.0) == ()
    (tmp_path / "gpu.jsonl").write_bytes(data)
    assert read_series(tmp_path, 1.0) == ()


def test_values_that_no_driver_says_are_not_known(tmp_path):
    write(tmp_path, {"devices": DEVICES[1:]}, tick(1, (0, "x", -5)), tick(2, (0, True, 1e99)))
    assert {each[2:] for each in read_series(tmp_path, BEGAN)[0].points} == {(None, None)}


def test_means_are_weighted_by_time_and_unknown_where_nothing_is_known():
    assert means([(0, 1, 100.0), (1, 2, 0.0), (2, 3, None), (4, 8, 10.0)], 8.0, 4) == [50.0, None, 10.0, 10.0]
    assert means([(0, 4, 10.0), (4, 5, 50.0)], 6.0, 1) == [18.0]
    assert means([], 1.0, 2) == [None, None]
    assert means([(0, 1, 1.0)], 0.0, 2) == [None, None]
