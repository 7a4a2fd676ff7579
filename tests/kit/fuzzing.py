"""Foreign bytes: valid documents made odd by type (each field in turn gets each odd value) and by bytes (cut, flipped,
torn apart). The same seed gives the same cases."""

from __future__ import annotations

import json
import random
import traceback
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple

from holdfast.codec import encode
from holdfast.frozen import field_names

HUGE = "1" + "0" * 400
ODD: tuple[str, ...] = (
    *("null", "true", "false", "0", "-1", "7", "1.5", "-0.0", "1e308", "-1e308", "1e999", "NaN", "Infinity"),
    *("-Infinity", HUGE, f"-{HUGE}", "1" * 5000, "9223372036854775808", "-9223372036854775809", "253402300800"),
    *("18446744073709551616", "1e18", "-62135596801", '""', '"text"', '"\\ud800"', '"\\udcff"', '"a\\u0000b"'),
    *(
        '"\\u001b[2J\\u0007"',
        '"a\\nb\\r\\tc"',
        '"../../etc/passwd"',
        '"/"',
        '"{detail} {0.__class__} %s"',
        '"' + "x" * 9000,
    ),
    *("[]", "{}", "[[]]", "[null]", '[1, "a"]', '{"a": 1}', '{"a": 1, "a": [2]}', '{"\\ud800": {"\\ud800": 1}}'),
    *(
        "[" * 90 + "]" * 90,
        "[" * 300 + "]" * 300,
        "[" * 800 + "]" * 800,
        '{"a":' * 600 + "1" + "}" * 600,
        "[" * 5000 + "]" * 5000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        f"[{HUGE}]",
        f'{{"a": {HUGE}}}',
    ),
)
"""As JSON says them, also what it does not allow."""
ODD = tuple(each + '"' if each.startswith('"xxx') else each for each in ODD)
_HERE = "\0here\0"


class Crash(NamedTuple):
    """What no reader may do with any bytes. `where`: the last line of the source that was run."""

    reader: str
    where: str
    why: str
    data: bytes


class Reader(NamedTuple):
    """`read` gets the bytes, and may raise `refusals` and nothing else. `form` of the `corpus`: `json`, `lines` of it,
    `bytes`, or `value`: bytes that are no JSON never come so far."""

    name: str
    read: Callable[[bytes], object]
    corpus: Sequence[bytes]
    form: str = "json"
    refusals: tuple[type[BaseException], ...] = ()


def by_type(document: Any, values: Sequence[str] = ODD) -> Iterator[bytes]:
    """The document with each odd value at each of its places; and with each of its keys twice."""
    for place in _places(document):
        marked = json.dumps(_replaced(document, place, _HERE))
        for odd in values:
            yield marked.replace(json.dumps(_HERE), odd, 1).encode("utf-8", "surrogatepass")
    for place in _places(document):
        if place and isinstance(place[-1], str):
            marked = json.dumps(_replaced(document, place, _HERE))
            key, value = json.dumps(place[-1]), json.dumps(_at(document, place))
            yield marked.replace(json.dumps(_HERE), f"[1], {key}: {value}", 1).encode()


def by_type_in_lines(data: bytes, values: Sequence[str] = ODD) -> Iterator[bytes]:
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines):
        for odd in by_type(json.loads(line), values):
            yield b"".join((*lines[:number], odd + b"\n", *lines[number + 1 :]))


def by_bytes(data: bytes, chance: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield _damaged(data, chance)


def cut(data: bytes, most: int) -> Iterator[bytes]:
    """Every beginning of it, or `most` of them."""
    for end in range(0, len(data), max(1, len(data) // most)):
        yield data[:end]


NASTY: tuple[bytes, ...] = (
    *(b"", b"\n", b"\0" * 4096, b"\xff\xfe[]", b"\xef\xbb\xbf{}", b"\xed\xa0\x80", b"x" * 300_000, b"\n" * 70_000),
    *(
        b"[" * 20_000,
        b'{"a":' * 20_000,
        b"- " * 20_000,
        b"a: {" * 20_000,
        b"a = [" + b"[" * 20_000,
        b"a." * 2_000 + b"b = 1",
    ),
    *(
        b"9" * 100_000,
        b'"' + b"\\" * 99_999,
        b"[[a]]\n" * 9999,
        b"&a [*a, *a]",
        b"%PDF-1.4",
        b"\x7fELF" + b"\xff" * 999,
    ),
)
"""Whatever the reader reads."""


def cases(reader: Reader, seed: int, types: int, bytes_: int) -> Iterator[bytes]:
    """At most `types` by type (all of them, if there are no more) and `bytes_` by bytes, of each in the corpus."""
    chance = random.Random(f"{seed} {reader.name}")
    yield from NASTY if reader.form != "value" else ()
    for data in reader.corpus:
        yield data
        if reader.form != "bytes":
            found = list(by_type_in_lines(data) if reader.form == "lines" else by_type(json.loads(data)))
            yield from found if len(found) <= types else chance.sample(found, types)
        if reader.form == "value":
            continue
        yield from cut(data, bytes_ // 4 or 1)
        yield from by_bytes(data, chance, bytes_)


def crash_of(reader: Reader, data: bytes) -> Crash | None:
    try:
        reader.read(data)
    except reader.refusals:
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return Crash(reader.name, place_of(error), f"{type(error).__name__}: {error}"[:200], data)
    return None


def place_of(error: BaseException) -> str:
    steps = [each for each in traceback.extract_tb(error.__traceback__) if "/holdfast/" in each.filename]
    names = [f"{each.filename.rpartition('/holdfast/')[2]}:{each.lineno}" for each in steps]
    return " < ".join(names[:-4:-1])


class Tally:
    """Counts the cases of each reader and keeps the shortest data for each place of a crash."""

    def __init__(self) -> None:
        self.cases = Counter[str]()
        self.crashes: dict[tuple[str, str], Crash] = {}

    def take(self, reader: str, crash: Crash | None) -> None:
        self.cases[reader] += 1
        if crash is not None:
            known = self.crashes.setdefault((crash.reader, crash.where), crash)
            if len(crash.data) < len(known.data):
                self.crashes[crash.reader, crash.where] = crash

    def __str__(self) -> str:
        lines = [
            f"{each.reader}: {each.why}\n    at {each.where}\n    {_cut(each.data)}" for each in self.crashes.values()
        ]
        return "\n".join([f"{self.cases.total()} cases, {len(self.crashes)} kinds of crashes", *lines])


def example(shape: Any) -> Any:
    """JSON that the codec reads as a value of this shape, with something in every list."""
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    plain: Mapping[Any, Any] = {str: "text", bool: True, int: 3, float: 2.5, Any: {"a": 1}}
    if shape in plain:
        return plain[shape]
    if origin is typing.Annotated:
        return example(arguments[0])
    if origin in (typing.Union, UnionType):
        return example(next(each for each in arguments if each is not NoneType))
    if origin is tuple:
        return [example(arguments[0])] if arguments[-1] is Ellipsis else [example(each) for each in arguments]
    if origin is not None and issubclass(origin, Mapping):
        return {"key": example(arguments[1])}
    if issubclass(shape, Enum):
        return next(iter(shape)).value
    hints = typing.get_type_hints(shape, include_extras=True)
    if issubclass(shape, tuple):
        return [example(hints[name]) for name in shape._fields]
    return {name: example(hints[name]) for name in field_names(shape)}


def in_file(folder: Path, name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)

    def written(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return written


def json_of(value: Any) -> bytes:
    return json.dumps(encode(value)).encode()


def json_lines(*values: Any) -> bytes:
    return b"".join(json_of(each) + b"\n" for each in values)


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, (*place, key))
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _places(each, (*place, number))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def _replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    step, rest = place[0], place[1:]
    if isinstance(value, dict):
        return {key: _replaced(each, rest, new) if key == step else each for key, each in value.items()}
    return [_replaced(each, rest, new) if number == step else each for number, each in enumerate(value)]


def _cut(data: bytes) -> str:
    return repr(data if len(data) < 400 else data[:200] + b" ... " + data[-200:])


_JUNK = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\n",
    b"\r\n",
    b"{",
    b"[",
    b'"',
    b"\x1b[2J",
    b"9" * 500,
    b"x" * 70_000,
    b"\0" * 4096,
)


def _damaged(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        place = chance.randrange(len(found) + 1)
        end = min(len(found), place + chance.choice((1, 2, 8, 64)))
        match chance.randrange(7):
            case 0 if found:
                found[min(place, len(found) - 1)] ^= 1 << chance.randrange(8)
            case 1:
                del found[place:end]
            case 2:
                found[place:place] = chance.choice(_JUNK)
            case 3:
                found[place:place] = found[place:end] * 3
            case 4:
                found[place:end] = chance.randbytes(end - place)
            case 5:
                found[place:end] = chance.choice(_JUNK)
            case _:
                del found[place:]
    return bytes(found)
