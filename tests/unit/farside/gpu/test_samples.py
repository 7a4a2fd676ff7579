"""The lines of the sampler, written and read: complete lines count even if others are torn, unknown or missing."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.samples import (
    Fold,
    Loss,
    Row,
    Samples,
    Tick,
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

DEVICES = (GpuDevice(0, "GPU-a", "Tesla K80", 12 << 30), GpuDevice(1, "GPU-b", "A100 …", mig=True))


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


def test_what_is_written_is_read_and_nothing_means_not_watched():
    assert read(b"") == Samples()
    assert read(b'{"format": 1, "beg').began is None
    assert read(encode_start(1.0, "nvml") + encode_problem(1.5, "Driver Not Loaded")).problem == "Driver Not Loaded"
    assert read(WHOLE) == Samples(
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


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_portions_of_any_size_give_the_same(cuts):
    fold = Fold()
    places = [0, *sorted(cuts), len(WHOLE)]
    for begin, end in pairwise(places):
        fold.feed(WHOLE[begin:end])
    assert fold.samples() == read(WHOLE)


@given(st.integers(0, len(WHOLE)))
def test_a_file_that_ends_anywhere_can_be_read(end):
    whole = WHOLE[:end].rpartition(b"\n")[0] + b"\n"
    assert read(WHOLE[:end]) == read(whole)


def test_what_a_later_version_adds_is_left_out():
    lines = [json.loads(line) for line in WHOLE.splitlines()]
    for line in lines:
        line["extra"] = {"more": 1}
        for each in line.get("d", []):
            each.append("more")
        for each in line.get("devices", []):
            each["more"] = 1
    assert read(b"".join(json.dumps(line).encode() + b"\n" for line in lines)) == read(WHOLE)


def test_what_is_asked_in_turn_is_carried_on():
    first = row(memory=1, power=None, temperature=50)
    second = row(memory=None, power=30.5, temperature=None, utilisation=None, own_memory=None, own_utilisation=None)
    samples = read(encode_tick(Tick(1.0, (first,))) + encode_tick(Tick(2.0, (second,))))
    assert samples.ticks[1].rows[0] == second._replace(memory=1, temperature=50)


def test_a_device_that_answers_is_not_lost_whatever_line_is_missing():
    lost = encode_loss(2.0, 0, "GPU is lost")
    assert read(lost + lost).losses == (Loss(2.0, 0, "GPU is lost", None),)
    assert read(lost + encode_tick(Tick(9.0, (row(0),)))).losses == (Loss(2.0, 0, "GPU is lost", 9.0),)
    assert read(lost + encode_tick(Tick(9.0, (row(1),)))).losses == (Loss(2.0, 0, "GPU is lost", None),)


def test_the_rate_falls_as_a_run_grows_old():
    hours = 3600.0
    ages = (0.0, 599.9, 600.0, hours - 1, hours, 6 * hours - 1, 6 * hours, 24 * hours - 1, 24 * hours, 1000 * hours)
    assert [period(age) for age in ages] == [1.0, 1.0, 2.0, 2.0, 5.0, 5.0, 10.0, 10.0, 60.0, 60.0]


def test_what_has_not_changed_is_kept_once():
    """Weeks of looks at eight devices must fit."""
    first = row(memory=1 << 40, power=61.5, own=(70001, 70002), others=(70003,))
    turn = first._replace(memory=None, temperature=None)
    other = turn._replace(power=None, utilisation=3)
    ticks = read(b"".join(encode_tick(Tick(float(at), (each,))) for at, each in enumerate((first, turn, other)))).ticks
    assert ticks[1].rows[0] is ticks[0].rows[0]
    before, after = ticks[0].rows[0], ticks[2].rows[0]
    assert after == first._replace(utilisation=3)
    for name in ("memory", "power", "own_memory", "own", "others"):
        assert getattr(after, name) is getattr(before, name), name


def test_what_is_forgotten_is_still_carried_on():
    fold = Fold()
    fold.feed(WHOLE)
    fold.forget(105.0)
    fold.feed(encode_tick(Tick(106.0, (row(memory=None),))))
    assert fold.samples().ticks == (read(WHOLE).ticks[-1], Tick(106.0, (row(),)))
    assert fold.samples().losses == read(WHOLE).losses


def test_a_device_may_be_lost_again_and_again():
    lines = b"".join(
        encode_loss(float(at), 0, "lost") + encode_tick(Tick(at + 0.5, (row(),))) + encode_loss(float(at), 1, "gone")
        for at in range(3)
    )
    assert [(each.time, each.number, each.until) for each in read(lines).losses] == [
        *((0.0, 0, 0.5), (0.0, 1, None), (1.0, 0, 1.5), (2.0, 0, 2.5))
    ]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from([1 << 63, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["number", "t", "x"]), inner),
    max_leaves=4,
)


def places(found: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values of a JSON document."""
    inner = enumerate(found) if isinstance(found, list) else found.items() if isinstance(found, dict) else ()
    return [way, *(deeper for key, each in inner for deeper in places(each, (*way, key)))]


def replaced(found: Any, way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    if isinstance(found, list):
        return [replaced(each, way[1:], value) if at == way[0] else each for at, each in enumerate(found)]
    return {key: replaced(each, way[1:], value) if key == way[0] else each for key, each in found.items()}


LINES = [*WHOLE.splitlines(), encode_problem(3.0, "no").strip()]
ANY_PLACE = st.sampled_from([(json.loads(line), way) for line in LINES for way in places(json.loads(line))])


def is_whole(found: Any) -> bool:
    return type(found) is int and abs(found) < 1 << 63


def is_number(found: Any) -> bool:
    return type(found) is float and abs(found) < 1 << 63


def assert_right(samples: Samples) -> None:
    assert samples.began is None or is_number(samples.began)
    assert isinstance(samples.source, str) and isinstance(samples.problem, str) and type(samples.skipped) is int
    for device in samples.devices:
        assert is_whole(device.number) and isinstance(device.uuid, str) and isinstance(device.name, str)
        assert (device.memory_total is None or is_whole(device.memory_total)) and isinstance(device.mig, bool)
    for loss in samples.losses:
        assert is_number(loss.time) and is_whole(loss.number) and isinstance(loss.problem, str)
        assert loss.until is None or is_number(loss.until)
    for tick in samples.ticks:
        assert is_number(tick.time)
        for each in tick.rows:
            assert is_whole(each.number) and is_whole(each.unmatched) and (each.power is None or is_number(each.power))
            for value in (each.utilisation, each.memory, each.temperature, each.own_memory, each.own_utilisation):
                assert value is None or is_whole(value)
            assert all(is_whole(pid) for pid in (*each.own, *each.others))
            assert isinstance(each.own, tuple) and isinstance(each.others, tuple)


@given(ANY_PLACE, ANYTHING)
def test_whatever_stands_in_a_line_nothing_of_a_wrong_kind_is_read(place, value):
    found, way = place
    line = json.dumps(replaced(found, way, value)).encode() + b"\n"
    assert_right(read(WHOLE + line + WHOLE))
    assert_right(read(line))


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":"1","d":[]}',
        b'{"t":Infinity,"d":[]}',
        b'{"t":1e999,"d":[]}',
        b'{"t":true,"d":[]}',
        b'{"t":1,"d":"abc"}',
        b'{"t":1,"d":["0123456789"]}',
        b'{"t":1,"d":[[0,true,null,null,null,null,null,[],[],0]]}',
        b'{"t":1,"d":[[0,"9",null,null,null,null,null,[],[],0]]}',
        b'{"t":1,"d":[[0,9,null,NaN,null,null,null,[],[],0]]}',
        b'{"t":1,"d":[[0,9,9.5,null,null,null,null,[],[],0]]}',
        b'{"t":1,"d":[[0,9,1' + b"0" * 30 + b",null,null,null,null,[],[],0]]}",
        b'{"t":1,"d":[[0,9,null,null,null,null,null,["7"],[],0]]}',
        b'{"t":1,"d":[[0,9,null,null,null,null,null,[],{"7":1},0]]}',
        *(b"", b"[]", b"17", b"\xff\xfe", b'{"t":1,"d":[[0]]}', b'{"t":1,"d":7}', b'{"lost":0}', b'{"new":1}'),
        b'{"devices":[null]}',
        b'{"devices":[{"number":0,"uuid":7,"name":"K80"}]}',
        b'{"devices":[{"number":0,"uuid":"","name":"","mig":1}]}',
        b'{"began":"now"}',
        b'{"skipped":true}',
        b'{"t":1,"lost":[0]}',
        b'{"t":1,"problem":7}',
        b'{"t":1,"d":' + b"[" * 100_000,
    ],
)
def test_a_line_that_makes_no_sense_or_has_another_kind_of_value_is_left_out(line):
    assert read(WHOLE + line + b"\n") == read(WHOLE)
