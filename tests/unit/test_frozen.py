"""Our frozen classes behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from holdfast import frozen


def _classes(make: Any) -> tuple[Any, Any, Any]:
    @make.dataclass(frozen=True)
    class Point:
        across: int
        down: int = 0
        names: list[str] = make.field(default_factory=list)
        count: ClassVar[int] = 7

        @property
        def total(self) -> int:
            return self.across + self.down

    @make.dataclass(frozen=True)
    class Pair:
        first: object
        second: object

        def __repr__(self) -> str:
            return "pair"

    @make.dataclass(frozen=True)
    class Bare:
        pass

    return Point, Pair, Bare


BOTH = pytest.mark.parametrize("make", [frozen, dataclasses], ids=["ours", "standard"])


@frozen.dataclass(frozen=True)
class Kept:
    value: int
    names: list[str] = frozen.field(default_factory=list)


@BOTH
def test_values_are_made_shown_and_compared(make):
    point, pair, bare = _classes(make)
    assert repr(point(1, names=["a"])).endswith("Point(across=1, down=0, names=['a'])")
    assert repr(pair(1, 2)) == "pair"
    assert point(1) == point(1, 0, []) != point(2)
    assert point(1).__eq__((1, 0, [])) is NotImplemented
    assert pair(1, 2) != bare()
    assert bare() == bare()
    assert point(1).names is not point(1).names
    assert (point(1, 2).total, point(1, 2).count, point.down, hasattr(point, "names")) == (3, 7, 0, False)


@BOTH
@pytest.mark.parametrize(
    ("given", "named", "complaint"),
    [
        ((), {}, "missing .*'across'"),
        ((), {"down": 1}, "missing .*'across'"),
        ((1, 2, [], 3), {}, "were given"),
        ((1,), {"across": 1}, "multiple values for argument 'across'"),
        ((1,), {"other": 1}, "unexpected keyword argument 'other'"),
    ],
)
def test_wrong_arguments_are_refused(make, given, named, complaint):
    point, _, _ = _classes(make)
    with pytest.raises(TypeError, match=f"Point.__init__\\(\\).*{complaint}"):
        point(*given, **named)


@pytest.mark.parametrize(
    ("number", "given", "named"),
    [
        (1, (), {"first": 1, "other": 2}),
        (1, (), {"other": 2}),
        (1, (1,), {"other": 2, "first": 1}),
        (1, (1, 2, 3), {"other": 2}),
        (1, (1, 2, 3), {}),
        (1, (), {}),
        (1, (1,), {}),
        (0, (1, 2, [], 3, 4), {}),
        (0, (), {"down": 1, "names": []}),
        (0, (1,), {"down": 1, "across": 2}),
        (2, (1,), {}),
        (2, (), {"other": 1}),
        (3, (), {"second": 1}),
        (3, (), {}),
    ],
)
def test_wrong_arguments_are_named_as_python_does(number, given, named):
    said = []
    for make in (frozen, dataclasses):
        with pytest.raises(TypeError) as caught:
            (*_classes(make), _many(make))[number](*given, **named)
        said.append(str(caught.value))
    assert said[0] == said[1]


def _many(make: Any) -> Any:
    @make.dataclass(frozen=True)
    class Many:
        first: int
        second: int
        third: int
        fourth: int

    return Many


@BOTH
def test_nothing_can_be_changed(make):
    value = _classes(make)[0](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'across'"):
        value.across = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'across'"):
        del value.across


@pytest.mark.parametrize(
    ("make", "functions"),
    [(frozen, frozen), (frozen, dataclasses), (dataclasses, dataclasses)],
    ids=["ours", "ours by the standard's functions", "standard"],
)
def test_values_are_replaced_and_taken_apart(make, functions):
    point, pair, _ = _classes(make)
    assert functions.replace(point(1, 2), down=5) == point(1, 5)
    assert point(3).names == []  # also after the standard library has looked at the class
    with pytest.raises(TypeError, match="other"):
        functions.replace(point(1), other=2)
    nested = pair([point(1)], {"a": (point(2),)})
    assert functions.asdict(nested) == {
        "first": [{"across": 1, "down": 0, "names": []}],
        "second": {"a": ({"across": 2, "down": 0, "names": []},)},
    }


def test_the_standard_library_takes_them_for_its_own():
    point, _, _ = _classes(frozen)
    for each in (point, point(1)):
        assert dataclasses.is_dataclass(each)
        assert [field.name for field in dataclasses.fields(each)] == ["across", "down", "names"]
        assert dataclasses.fields(each)[1].default == 0
    assert frozen.field_names(point) == frozen.field_names(point(1)) == ("across", "down", "names")


@BOTH
def test_values_can_be_matched_and_hashed(make):
    _, pair, _ = _classes(make)
    match pair(1, "a"):
        case pair(first, "a"):
            assert first == 1
        case _:
            pytest.fail("it does not match")
    assert len({pair(1, "a"), pair(1, "a"), pair(1, "b")}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(pair([], 1))


def test_values_can_be_pickled_and_copied():
    value = Kept(1, ["a"])
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


def test_what_is_not_frozen_is_for_the_standard_library():
    with pytest.raises(TypeError, match="only frozen"):
        frozen.dataclass(frozen=False)
