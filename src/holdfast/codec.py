"""Values as JSON and back, by the shape that their annotations give them.

A frozen value is an object with its fields as keys, a named tuple a list, an enum its value; a value with a method
`as_json` says itself how it is written. What the far side answers is decoded strictly, since it is of this very build.
Files are recovered leniently: unknown keys are ignored, and what cannot be read is left out where the shape allows
that.

Nothing that comes out of here breaks what uses it: whole numbers have 64 bits. Values of any shape are nested only so
deep, and a number in them is one that a float can show.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar

from holdfast.frozen import field_names, required_names

_Value = TypeVar("_Value")
DEEPEST = 100
"""Levels of a value of any shape."""
LARGEST = 1 << 1023
"""What `holdfast.log` takes: every smaller number is a float too."""
_Reader = Callable[[Any, bool], Any]
"""Takes the data and whether it is read leniently."""


class Malformed(ValueError):
    """The data does not have the shape; the text names the place."""


class Between(NamedTuple):
    """In an annotation: `Annotated[float, Between(0, 100)]`. The end is excluded."""

    begin: float
    end: float


def encode(value: Any) -> Any:
    """JSON from which `decode` of the value's class makes an equal value."""
    if type(value) in _PLAIN or value is None:
        return value
    if hasattr(value, "as_json"):
        return value.as_json()
    if isinstance(value, (tuple, list)):
        return [encode(each) for each in value]
    if hasattr(value, "items"):
        return {key: encode(each) for key, each in value.items()}
    if isinstance(value, Enum):
        return value.value
    return {name: encode(getattr(value, name)) for name in field_names(value)}


def decode(cls: type[_Value], data: Any) -> _Value:
    """Strictly: raises Malformed unless everything is there and of the right kind."""
    value: _Value = _reader(cls)(data, False)
    return value


def recover(cls: type[_Value], data: Any) -> _Value:
    """Leniently: a field that is missing or wrong takes its default, and a list keeps what can be read of it. Raises
    Malformed where a field without a default cannot be read."""
    value: _Value = _reader(cls)(data, True)
    return value


_readers: dict[Any, _Reader] = {}


def _reader(shape: Any) -> _Reader:
    found = _readers.get(shape)
    if found is None:
        found = _readers[shape] = _made(shape)
    return found


def _made(shape: Any) -> _Reader:
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if shape in _PLAIN:
        return _PLAIN[shape]
    if origin is typing.Annotated:
        return _within(_reader(arguments[0]), arguments[1])
    if origin in (typing.Union, UnionType):
        return _any_of(arguments)
    if origin is tuple:
        return _several(arguments[0]) if arguments[-1] is Ellipsis else _row(tuple, arguments, len(arguments))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(arguments[1])
    if issubclass(shape, Enum):
        return _member(shape)
    hints = typing.get_type_hints(shape, include_extras=True)
    if issubclass(shape, tuple):
        fields = shape._fields
        least = len(fields) - len(shape._field_defaults)
        return _row(lambda found: shape(*found), tuple(hints[name] for name in fields), least)
    return _object(shape, {name: hints[name] for name in field_names(shape)})


def _object(cls: Any, hints: Mapping[str, Any]) -> _Reader:
    readers, required = {name: _reader(hint) for name, hint in hints.items()}, required_names(cls)

    def read(data: Any, is_lenient: bool) -> Any:
        if not isinstance(data, Mapping):
            raise _wrong(data, "object")
        found = {}
        for name, reader in readers.items():
            if name not in data:
                continue
            try:
                found[name] = reader(data[name], is_lenient)
            except Malformed as error:
                if not is_lenient:
                    raise Malformed(f"`{name}`: {error}") from error
        for name in required:
            if name not in found:
                raise Malformed(f"`{name}` is missing or not what it should be")
        return cls(**found)

    return read


def _row(make: Callable[[Any], Any], shapes: tuple[Any, ...], least: int) -> _Reader:
    readers = [_reader(each) for each in shapes]

    def read(data: Any, is_lenient: bool) -> Any:
        if (
            not isinstance(data, list)
            or not least <= len(data)
            or (len(data) > len(readers) and (not is_lenient or make is tuple))
        ):
            raise _wrong(data, f"list of {len(readers)}")
        return make([reader(each, is_lenient) for reader, each in zip(readers, data, strict=False)])

    return read


def _several(shape: Any) -> _Reader:
    reader = _reader(shape)

    def read(data: Any, is_lenient: bool) -> Any:
        if not isinstance(data, list):
            raise _wrong(data, "list")
        if not is_lenient:
            return tuple(reader(each, False) for each in data)
        found = []
        for each in data:
            try:
                found.append(reader(each, True))
            except Malformed:
                continue
        return tuple(found)

    return read


def _mapping(shape: Any) -> _Reader:
    reader = _reader(shape)

    def read(data: Any, is_lenient: bool) -> Any:
        if not isinstance(data, Mapping):
            raise _wrong(data, "object")
        found = {}
        for key, each in data.items():
            try:
                found[key] = reader(each, is_lenient)
            except Malformed:
                if not is_lenient:
                    raise
        return found

    return read


def _any_of(shapes: tuple[Any, ...]) -> _Reader:
    readers = [_reader(each) for each in shapes if each is not NoneType]

    def read(data: Any, is_lenient: bool) -> Any:
        if data is None and NoneType in shapes:
            return None
        for reader in readers[:-1]:
            try:
                return reader(data, is_lenient)
            except Malformed:
                continue
        return readers[-1](data, is_lenient)

    return read


def _member(cls: type[Enum]) -> _Reader:
    members = {each.value: each for each in cls}

    def read(data: Any, is_lenient: bool) -> Any:
        if not isinstance(data, str) or data not in members:
            raise _wrong(data, f"{cls.__name__}")
        return members[data]

    return read


def _within(reader: _Reader, limits: Between) -> _Reader:
    def read(data: Any, is_lenient: bool) -> Any:
        value = reader(data, is_lenient)
        if not limits.begin <= value < limits.end:
            raise Malformed(f"{value!r} is out of range")
        return value

    return read


def _text(data: Any, is_lenient: bool) -> str:
    if not isinstance(data, str):
        raise _wrong(data, "text")
    return data


def _truth(data: Any, is_lenient: bool) -> bool:
    if not isinstance(data, bool):
        raise _wrong(data, "yes or no")
    return data


def _whole(data: Any, is_lenient: bool) -> int:
    if is_lenient and isinstance(data, float) and abs(data) < 1 << 63:
        return int(data)
    if not isinstance(data, int) or isinstance(data, bool) or abs(data) >= 1 << 63:
        raise _wrong(data, "whole number")
    return data


def _number(data: Any, is_lenient: bool) -> float:
    if isinstance(data, (int, float)) and not isinstance(data, bool) and abs(data) < 1 << 63:  # no NaN either
        return float(data)
    raise _wrong(data, "number")


def _anything(data: Any, is_lenient: bool) -> Any:
    """Level by level: Python recurses into what is nested, here or where it is written again."""
    if type(data) is str or type(data) is float or data is None:
        return data
    level = [data]
    for _ in range(DEEPEST):
        if any(type(each) is int and not -LARGEST < each < LARGEST for each in level):
            raise Malformed("a whole number in it is too large")
        level = [
            each
            for outer in level
            if isinstance(outer, (dict, list))
            for each in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return data
    raise Malformed(f"it is nested more than {DEEPEST} deep")


def _wrong(data: Any, wanted: str) -> Malformed:
    return Malformed(f"{str(data)[:40]!r} is no {wanted}")


_PLAIN: Mapping[Any, _Reader] = {str: _text, bool: _truth, int: _whole, float: _number, Any: _anything}
