"""The lines of the sampler, written and read: whatever is torn, unknown or missing, what is whole counts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.farside.gpu.watching.samples import (
    Fold,
    Loss,
    Row,
    Samples,
    Tick,
    Watched,
    encode_devices,
    encode_found,
    encode_loss,
    encode_problem,
    encode_skipped,
    encode_start,
    encode_tick,
    period,
    read,
)

DEVICES = (Watched(0, "GPU-a", "Tesla K80", 12 << 30, False), Watched(1, "GPU-b", "A100 …", None, True))


def row(number: int = 0, **changes: Any) -> Row:
    return Row(number, 74, 900, 60.1, 55, 800, 70, (11, 12), (13,), 1)._replace(**changes)


WHOLE = (
    encode_start(100.0, "nvml")
    + encode_devices(DEVICES)
    + encode_tick(Tick(101.0, (row(), row(1, utilisation=None, own=(), others=()))))
    + encode_loss(102.0, 1, "GPU is lost")
    + encode_tick(Tick(102.0, (row(own_memory=None),)))
    + encode_skipped(104.0, 2)
    + encode_found(105.0, 1)
    + encode_tick(Tick(105.0, (row(), row(1))))
)


def test_what_is_written_is_read() -> None:
    samples = read(WHOLE)
    assert samples == Samples(
        began=100.0,
        source="nvml",
        devices=DEVICES,
        ticks=(
            Tick(101.0, (row(), row(1, utilisation=None, own=(), others=()))),
            Tick(102.0, (row(own_memory=None),)),
            Tick(105.0, (row(), row(1))),
        ),
        losses=(Loss(102.0, 1, "GPU is lost", 105.0),),
        skipped=2,
    )


def test_a_driver_that_cannot_be_used_is_a_problem() -> None:
    assert read(encode_start(1.0, "nvml") + encode_problem(1.5, "Driver Not Loaded")).problem == "Driver Not Loaded"


def test_nothing_is_nobody_who_watched() -> None:
    assert read(b"") == Samples()
    assert read(b'{"format": 1, "beg').began is None


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_portions_of_any_size_give_the_same(cuts: list[int]) -> None:
    fold = Fold()
    places = [0, *sorted(cuts), len(WHOLE)]
    for begin, end in pairwise(places):
        fold.feed(WHOLE[begin:end])
    assert fold.samples() == read(WHOLE)


@given(st.integers(0, len(WHOLE)))
def test_a_file_that_ends_anywhere_can_be_read(end: int) -> None:
    whole = WHOLE[:end].rpartition(b"\n")[0] + b"\n"
    assert read(WHOLE[:end]) == read(whole)


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"17", b"\xff\xfe", b'{"t":1,"d":[[0]]}', b'{"t":1,"d":7}', b'{"lost":0}', b'{"new":1}']
)
def test_a_line_that_makes_no_sense_is_left_out(line: bytes) -> None:
    assert read(WHOLE + line + b"\n") == read(WHOLE)


def test_what_a_later_version_adds_is_left_out() -> None:
    lines = [json.loads(line) for line in WHOLE.splitlines()]
    for line in lines:
        line["extra"] = {"more": 1}
        for each in line.get("d", []):
            each.append("more")
        for each in line.get("devices", []):
            each["more"] = 1
    assert read(b"".join(json.dumps(line).encode() + b"\n" for line in lines)) == read(WHOLE)


def test_what_is_asked_in_turn_is_carried_on() -> None:
    first = row(memory=1, power=None, temperature=50)
    second = row(memory=None, power=30.5, temperature=None, utilisation=None, own_memory=None, own_utilisation=None)
    samples = read(encode_tick(Tick(1.0, (first,))) + encode_tick(Tick(2.0, (second,))))
    assert samples.ticks[1].rows[0] == second._replace(memory=1, temperature=50)


def test_a_device_that_answers_is_not_lost_whatever_line_is_missing() -> None:
    lost = encode_loss(2.0, 0, "GPU is lost")
    assert read(lost + lost).losses == (Loss(2.0, 0, "GPU is lost", None),)
    assert read(lost + encode_tick(Tick(9.0, (row(0),)))).losses == (Loss(2.0, 0, "GPU is lost", 9.0),)
    assert read(lost + encode_tick(Tick(9.0, (row(1),)))).losses == (Loss(2.0, 0, "GPU is lost", None),)


def test_the_rate_falls_as_a_run_grows_old() -> None:
    hours = 3600.0
    ages = (0.0, 599.9, 600.0, hours - 1, hours, 6 * hours - 1, 6 * hours, 1000 * hours)
    assert [period(age) for age in ages] == [1.0, 1.0, 2.0, 2.0, 5.0, 5.0, 10.0, 10.0]
