"""Values as JSON and back by their annotations, strictly and leniently."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, NamedTuple

import pytest

from holdfast.codec import Between, Malformed, decode, encode, recover
from holdfast.frozen import dataclass, field


class Colour(Enum):
    RED = "red"


class Row(NamedTuple):
    name: str
    size: int = 0


@dataclass(frozen=True)
class Part:
    rows: tuple[Row, ...] = ()
    pair: tuple[float, float] | None = None


@dataclass(frozen=True)
class Whole:
    name: str
    colour: Colour = Colour.RED
    share: Annotated[float, Between(0, 100)] = 0.0
    part: Part = Part()
    sizes: Mapping[str, int] = field(default_factory=dict)
    more: Any = None


FULL = Whole("a", Colour.RED, 5.0, Part((Row("x", 7),), (1.0, 2.0)), {"a": 1}, [None])


def test_what_is_encoded_is_decoded_to_an_equal_value():
    data = encode(FULL)
    assert data["part"] == {"rows": [["x", 7]], "pair": [1.0, 2.0]}
    assert decode(Whole, data) == recover(Whole, data) == FULL


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": 7}, "`name`: '7' is no text"),
        ({"colour": "green"}, "Colour"),
        ({"colour": []}, "Colour"),
        ({"share": 100}, "range"),
        ({"share": float("nan")}, "number"),
        ({"share": True}, "number"),
        ({"part": {"rows": [["x", 7], ["x", 1, 2]]}}, "`part`: `rows`: .* list of 2"),
        ({"part": {"rows": {}}}, "no list"),
        ({"part": {"pair": [1]}}, "list of 2"),
        ({"sizes": {"a": 1 << 63}}, "whole number"),
        ({"sizes": []}, "object"),
        ({"part": None}, "object"),
    ],
)
def test_what_has_another_shape_is_refused_or_leniently_left_out(wrong, words):
    with pytest.raises(Malformed, match=words):
        decode(Whole, {**encode(FULL), **wrong})
    if "name" not in wrong:
        assert recover(Whole, {**encode(FULL), **wrong}).name == "a"


def test_leniently_a_list_is_what_can_be_read_of_it_and_more_than_is_known_is_passed_over():
    rows = [["x", 7, "later"], 5, ["y"], [8, 8], None]
    assert recover(Whole, {"name": "a", "later": 1, "part": {"rows": rows}}).part.rows == (Row("x", 7), Row("y"))
    assert recover(Whole, {"name": "a", "sizes": {"a": 1, "b": "?", "c": 3}}).sizes == {"a": 1, "c": 3}


@pytest.mark.parametrize("data", [None, [], "a", {}, {"name": None}])
def test_what_must_be_there_must_be_there(data):
    for read in (decode, recover):
        with pytest.raises(Malformed):
            read(Whole, data)
