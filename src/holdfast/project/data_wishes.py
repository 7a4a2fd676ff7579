"""Data beside the project that runs read: lines of `Data:` in a run configuration, and `--data`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass
from holdfast.written_files import OUTPUTS

if TYPE_CHECKING:
    from holdfast.project.fields import Fields

KEY = "Data"
EXAMPLE = "~/datasets/tiny:data/tiny"
MOST = 100
"""Lines of a run configuration; a clone may have a million."""
_THERE = r"([A-Za-z0-9_][A-Za-z0-9_.-]*):((?:/|~/).*|~)"


@dataclass(frozen=True)
class DataWish:
    """A folder or file at `source`, which a run finds at `target` in its working folder. `place` is the compute target
    whose machine has it; empty for this one."""

    source: str
    target: str
    place: str = ""

    def __str__(self) -> str:
        return f"{f'{self.place}:' if self.place else ''}{self.source}:{self.target}"


def parse_data(text: str) -> DataWish:
    """`SOURCE:TARGET`, or `NAME:SOURCE:TARGET` of what lies on a compute target's machine. Raises UsageError."""
    source, has_target, typed = text.rpartition(":")
    if not has_target or not source or not typed or "\0" in text:
        raise UsageError(f"`{text}` is not SOURCE:TARGET.", f"Write SOURCE:TARGET, such as {EXAMPLE}")
    target = typed.replace("\\", "/").rstrip("/")
    while target.startswith("./"):
        target = target[2:]
    parts = target.split("/")
    if any(part in ("", ".", "..") for part in parts) or not target.isprintable() or re.match("[A-Za-z]:", target):
        raise UsageError(f"`{typed}` is not a path in the project.", f"Name one from the project's top: {EXAMPLE}")
    if reserved_path([target]) is not None or parts[0] == OUTPUTS:
        raise UsageError(f"`{typed}` is reserved.", f"Choose another place: {EXAMPLE}")
    there = re.fullmatch(_THERE, source, re.DOTALL)
    if there is not None and not (os.name == "nt" and len(there[1]) == 1):
        return DataWish(there[2].rstrip("/") or "/", target, there[1])
    return DataWish(source, target)


def in_force(typed: Sequence[DataWish], written: Sequence[DataWish]) -> tuple[DataWish, ...]:
    """What was typed takes the place of what is written for the same target. Raises UsageError where one lies in
    another."""
    chosen = {each.target: each for each in (*written, *typed)}
    for inner in chosen:
        outer = next((each for each in folders_above(inner) if each in chosen), None)
        if outer is not None:
            raise UsageError(f"`{inner}` lies in `{outer}`, and both are data.", "Give each a place of its own.")
    return tuple(chosen.values())


def folders_above(path: str) -> Iterator[str]:
    """Those of `a/b/c` are `a` and `a/b`."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def read_data(fields: Fields) -> tuple[DataWish, ...]:
    """Those of a run configuration; mistakes are added to the problems of its file."""
    found: list[DataWish] = []
    items = list(fields.texts(KEY, EXAMPLE) or ())
    if len(items) > MOST:
        fields.error(KEY, f"has more than {MOST} lines", "Name a folder that holds several.", items[MOST])
    for item in items[:MOST]:
        try:
            wish = parse_data(item.text)
            in_force([wish], found)
        except UsageError as error:
            fields.error(KEY, error.message.rstrip("."), error.hint, item)
        else:
            found.append(wish)
    return tuple(found)
