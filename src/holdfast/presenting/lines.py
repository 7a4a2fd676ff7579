"""What is shown to people, before it is known where: lines, rows, columns and marks; errors as lines, and ids,
metrics, times and sizes as words. Durations and sizes that can be typed too are in `project/quantities.py`.

A terminal gives them colours and widths, a page its tags. Colour only repeats what the words say.
"""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

from holdfast.errors import ExitCode, HoldfastError
from holdfast.frozen import dataclass

GIB = 1 << 30
_ID_LENGTH, _ID_SHOWN = 16, 8
"""Characters of an environment's id, and how many are shown: the beginning is enough for every command."""


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
    """`text` is one line: line breaks in it are shown escaped, as they may be somebody else's. `remedy` is what to do
    about it, in lines of its own. `mark` stands before the text, in its colour. `doing` tells which lines of progress
    are about the same. `more` are lines below the text."""

    text: str
    level: Level = Level.NOTICE
    remedy: str = ""
    mark: Mark | None = None
    doing: str = ""
    more: Sequence[str] = ()


Row: TypeAlias = tuple[str, str]
"""Of a page in two columns: a title and a text. Rows that follow each other with the same title are one field."""


@dataclass(frozen=True)
class Column:
    """One column of a table: a key of its rows, under a title. `format` is for people, never for JSON."""

    key: str
    title: str
    align: Literal["left", "right"] = "left"
    format: Callable[[Any], str] | None = None


def at_most(text: str, length: int) -> str:
    """Cut where it is longer, with a sign that it was."""
    return text if len(text) <= length else f"{text[: max(0, length - 1)]}…"


def short_id(name: str) -> str:
    """The id of an environment as it is shown to people; other names are shown in full."""
    return name[:_ID_SHOWN] if len(name) == _ID_LENGTH and not set(name) - set("0123456789abcdef") else name


def counted(number: int, what: str) -> str:
    """`1 file`, `3 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def metric_text(value: Any, digits: int = 5) -> str:
    """Of a list only how long it is."""
    if isinstance(value, float):
        return f"{value:.{digits}g}" if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return f"[{counted(len(value), 'value')}]"
    return "" if value is None else str(value)


def clock_time(seconds: float, now: float) -> str:
    """`14:02` today, `2026-11-03 14:02` on another day."""
    then, today = time.localtime(seconds), time.localtime(now)
    is_today = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)


def local_time(seconds: float | None) -> str:
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def offset_text(seconds: float) -> str:
    """Of another clock."""
    return f"{abs(seconds):.1f} s {'ahead of' if seconds >= 0 else 'behind'}"


def gibibytes(count: int | None) -> str:
    """As sizes of GPUs are usually given."""
    return "unknown" if count is None else f"{count / GIB:.2f} GiB"


def error_line(problem: BaseException) -> tuple[Line, ExitCode]:
    """What is not an error of ours, nor one of a disk, is a defect."""
    if isinstance(problem, HoldfastError):
        first, *more = problem.lines
        return Line(first, Level.ERROR, problem.hint, more=more), problem.exit_code
    if isinstance(problem, OSError) and problem.errno in _STORAGE:
        return _storage(problem), ExitCode.STORAGE
    text = f"{type(problem).__name__}: {problem}".rstrip(": ")
    remedy = "This is a defect of Holdfast. To see where: the same with --debug, or with HOLDFAST_DEBUG=1."
    return Line(text, Level.ERROR, remedy, Mark("internal error", Role.BAD)), ExitCode.INTERNAL


def _storage(problem: OSError) -> Line:
    name = problem.filename
    name = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    place = f" `{name}`" if isinstance(name, str) else ""
    text = f"A file{place} cannot be read or written: {problem.strerror or problem}."
    return Line(text, Level.ERROR, "Check the disk's space and the permissions.")


_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
