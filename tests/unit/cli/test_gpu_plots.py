"""The plot of a run's GPUs: how samples are drawn in the available width."""

from __future__ import annotations

import pytest

from holdfast.cli.gpu_plot import plot
from holdfast.frozen import replace
from holdfast.history.gpu_series import Series
from kit.gpu_values import GIB, series


def steps(*busy: float | None) -> Series:
    return series(*((each, 0.0) for each in busy))


def test_the_heights_of_a_plot_are_the_means_of_their_time():
    twice = (each for each in (0, 1, 14, 15, 50, 99, 100, 0, 100, None) for _ in range(2))
    lines = list(plot([steps(*twice)], 20.0, 13 + 2 + 25 + 20, has_blocks=True))
    assert lines == [
        "GPU 0 busy    ▁▁▂▂▂▂▃▃▅▅████▁▁██·· peak 100 %",
        "GPU 0 memory  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁ peak 0.0 of 4.0 GiB",
        "              0s     10.0s   20.0s · not known",
    ]


def test_where_it_is_narrow_words_stand_above_the_plot_which_has_all_of_the_width():
    lines = list(plot([steps(0, 1, 14, 15, 50, 99, 100, None)], 8.0, 8, has_blocks=True))
    assert lines == [
        "GPU 0 busy, peak 100 %",
        "▁▂▂▃▅██·",
        "GPU 0 memory, peak 0.0 of 4.0 GiB",
        "▁▁▁▁▁▁▁▁",
        "0s  8.0s",
        "· not known",
    ]
    at_60_columns = list(plot([steps(*range(100))], 100.0, 60 - 16, has_blocks=True))
    assert [len(line) for line in at_60_columns[1::2]] == [44, 44]


@pytest.mark.parametrize(
    ("seen", "seconds", "room", "has_blocks", "expected"),
    [
        (steps(0, 1, 14, 15, 50, 99, 100, None), 8.0, 8, False, {1: "_..:=##?", -1: "? not known"}),
        (series((0, 2 * GIB), (0, 4 * GIB)), 2.0, 2, True, {2: "GPU 0 memory, peak 4.0 of 4.0 GiB", 3: "▅█"}),
        (series((0, 1 * GIB), (0, 2 * GIB), total=None), 2.0, 2, True, {2: "GPU 0 memory, peak 2.0 GiB", 3: "▅█"}),
        (steps(0, 100, 100, 100), 8.0, 4, True, {1: "▅█··"}),
    ],
    ids=[
        "without blocks there are letters",
        "memory against the device's own",
        "memory against the most that was seen",
        "bins are means, the time after the last look is unknown",
    ],
)
def test_a_line_of_the_plot(seen, seconds, room, has_blocks, expected):
    lines = list(plot([seen], seconds, room, has_blocks=has_blocks))
    assert {at: lines[at] for at in expected} == expected


def test_what_the_driver_does_not_tell_is_said_to_be_not_known():
    lines = list(plot([series((None, None))], 1.0, 1, has_blocks=True))
    assert lines == ["GPU 0 busy, not known", "·", "GPU 0 memory, not known", "·", "1.0s", "· not known"]


@pytest.mark.parametrize("room", [1, 20, 45, 60, 100, 300])
def test_a_plot_keeps_to_its_room_and_never_grows_beyond_a_page(room):
    both = [steps(*range(100)), replace(steps(*range(100)), number=1)]
    lines = list(plot(both, 3600.0, room, has_blocks=True))
    assert len([line for line in lines if "not known" not in line or room >= 60]) == (5 if room >= 60 else 9)
    assert max(map(len, lines)) <= max(room, len("GPU 0 memory, peak 0.0 of 4.0 GiB")), "there is always one cell"
    assert max(map(len, lines)) <= 100
    assert room < 100 or ("30m 00s" in lines[-1] and "1h 00m" in lines[-1])


def test_nothing_is_drawn_where_nothing_was_seen():
    assert list(plot([], 5.0, 80, has_blocks=True)) == []
    assert list(plot([steps()], 5.0, 80, has_blocks=True)) == []
    assert list(plot([steps()], None, 80, has_blocks=True)) == []
