"""What is shown to people, before it is known where: lines, rows, columns and marks.

A terminal gives them colours and widths, a page its tags. Colour only repeats what the words say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

from holdfast.frozen import dataclass


class Level(Enum):
    """How much a line matters, and how long it stays."""

    PASSING = "passing"
    """Replaced by the next line, and left out where nothing can be replaced."""
    PROGRESS = "progress"
    """The same; a log gets one now and then."""
    DETAIL = "detail"
    """For those who want to know more."""
    NOTICE = "notice"
    DATA = "data"
    """What was asked for: a program may read it."""
    WARNING = "warning"
    ERROR = "error"


class Role(Enum):
    """What a colour stands for."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"
    ACTIVE = "active"
    QUIET = "quiet"


class Mark(NamedTuple):
    """A few words with a colour: a status, a verdict."""

    text: str
    role: Role


@dataclass(frozen=True)
class Line:
    """`remedy` is what to do about it, in lines of its own. `mark` stands before the text, in its colour. `doing` tells
    which lines of progress are about the same."""

    text: str
    level: Level = Level.NOTICE
    remedy: str = ""
    mark: Mark | None = None
    doing: str = ""


Row: TypeAlias = tuple[str, str]
"""Of a page in two columns: a title and a text. Rows that follow each other with the same title are one field."""


@dataclass(frozen=True)
class Column:
    """One column of a table: a key of its rows, under a title. `format` is for people, never for JSON."""

    key: str
    title: str
    align: Literal["left", "right"] = "left"
    format: Callable[[Any], str] | None = None


def one_line(text: str) -> str:
    """`text` without characters that would break a line or steer a terminal: they are shown escaped."""
    return _CONTROL.sub(lambda found: _NAMED_CONTROLS.get(found[0], f"\\x{ord(found[0]):02x}"), text)


def at_most(text: str, length: int) -> str:
    """Cut where it is longer, with a sign that it was."""
    return text if len(text) <= length else f"{text[: max(0, length - 1)]}…"


def counted(number: int, what: str) -> str:
    """`1 file`, `3 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NAMED_CONTROLS = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
