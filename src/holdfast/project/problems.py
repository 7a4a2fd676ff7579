"""One problem of one line in a project's file, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from holdfast.frozen import dataclass

Severity = Literal["error", "warning"]

SHOWN = 300
"""Characters of a key or message that are shown: a key may be as long as its file."""


@dataclass(frozen=True)
class Problem:
    """`file` is relative to the project, with `/`; `line` 0: the file as a whole; `key` may be empty; `message` has no
    full stop."""

    file: str
    line: int
    key: str
    message: str
    remedy: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        place = f"{_one_line(self.file)}:{self.line}: " if self.line else f"{_one_line(self.file)}: "
        key = f"{_one_line(self.key)}: " if self.key else ""
        remedy = f" {_one_line(self.remedy.replace(chr(10), ' '))}" if self.remedy else ""
        return f"{place}{key}{_one_line(self.message)}.{remedy}"


@dataclass(frozen=True)
class Mistake:
    """What is wrong with a value or a line, and what to write instead."""

    message: str
    remedy: str


def errors_in(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]


def _one_line(text: str) -> str:
    """Keys come from the file: line breaks and terminal codes in them must not reach the terminal."""
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in shown)
