"""A script that changes before every command, so that its output proves that this version ran."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import children
from children import Place
from measuring import Contender


def contender(
    name: str,
    place: Place,
    argv: list[str],
    before: Callable[[], None] = lambda: None,
    folder: Path | None = None,
) -> Contender:
    """The script lies in `folder`, or in the place's project. `before` and the change of the script do not count."""
    # Each has another length: rsync takes a file of the same size and second for the same.
    words = (f"{number}{'.' * number}" for number in itertools.count(1))

    def measured() -> float:
        word = next(words)
        write_script(folder or place.project, word)
        before()
        return children.seconds(place, argv, word)

    return Contender(name, measured)


def write_script(folder: Path, word: str) -> None:
    (folder / "s.py").write_text(f'print("{word}")\n')
