"""`.holdfast/ignored.json`: which ignored files this project's user was told of, and what the answer was."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass
from holdfast.project.include_wishes import as_typed, checked_include
from holdfast.regular_files import read_json
from holdfast.whole_files import write_whole

NAME = "ignored.json"
_FORMAT = 1
_LARGEST, _MOST_NAMED = 4_000_000, 10_000


@dataclass(frozen=True)
class IgnoredAnswers:
    """`shipped`: globs that ship with every run. `named`: files and folders (with a `/` at the end) that were named.
    `is_quiet`: nothing is named any more."""

    shipped: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    is_quiet: bool = False


def read_answers(state: Path) -> IgnoredAnswers:
    """None yet, where there is no file, or a damaged one: it asks again."""
    try:
        document = read_json(state / NAME, _LARGEST, follows_link=False)
        if document["format"] != _FORMAT:
            return IgnoredAnswers()
        shipped = tuple(checked_include(as_typed(each)) for each in document["shipped"])
        named = frozenset(each for each in document["named"] if isinstance(each, str))
        return IgnoredAnswers(shipped, named, document["quiet"] is True)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, HoldfastError):
        return IgnoredAnswers()


def write_answers(state: Path, answers: IgnoredAnswers) -> bool:
    """Whether the disk took them; a run needs none of them."""
    document = {
        "format": _FORMAT,
        "shipped": list(answers.shipped),
        "named": sorted(answers.named)[:_MOST_NAMED],
        "quiet": answers.is_quiet,
    }
    try:
        write_whole(state / NAME, json.dumps(document, indent=1).encode("ascii") + b"\n")
    except OSError:
        return False
    return True
