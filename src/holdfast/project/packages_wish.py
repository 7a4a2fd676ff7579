"""Which file a run's packages come from, and which of its extras and groups: as they are typed, chosen and recorded.

A name may have parts behind it, `pyproject.toml[examples,group:dev]`. So it is typed, written into a run configuration
and recorded.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from holdfast.errors import UsageError
from holdfast.frozen import dataclass

NONE = "none"
"""For `-d`: no file, the target's own Python as it is."""
GROUP = "group:"
"""Before the name of a dependency group."""
SETUP_FILES = ("setup.cfg", "setup.py")
WITH_PARTS = ("uv.lock", "pyproject.toml", *SETUP_FILES)
"""Files that may have extras."""


@dataclass(frozen=True)
class PackagesWish:
    """What was typed. `file` is relative to the project, None where no file is named. `parts` are extras, and groups
    as `group:NAME`. A file is looked for in `folder` and those above it, up to the project's top; if there is none,
    in the folder of `script`."""

    file: str | None = None
    parts: tuple[str, ...] = ()
    folder: str = ""
    script: str = ""


@dataclass(frozen=True)
class PackagesChoice:
    """`written` is the file with its parts; empty for an environment without packages. `is_found`: no one named it;
    then `others` are the files beside it that would do. `is_remembered`: the user chose among these files before."""

    written: str
    is_found: bool = False
    others: tuple[str, ...] = ()
    is_remembered: bool = False


def names_packages(wish: PackagesWish | None) -> bool:
    """Whether the user asked for an environment, on whichever target."""
    return wish is not None and (wish.file is not None or bool(wish.parts))


def split_parts(written: str) -> tuple[str, tuple[str, ...]]:
    """`pyproject.toml[a,b]` → the file and `("a", "b")`."""
    found = re.fullmatch(r"([^\[\]]+\.(?:toml|lock|cfg|py))\[([^\[\]]*)\]", written)
    if found is None:
        return written, ()
    parts = (each.strip() for each in found[2].split(","))
    return found[1], tuple(dict.fromkeys(each for each in parts if each))


def with_parts(written: str, parts: Sequence[str]) -> str:
    """The name of a file with these parts beside its own."""
    file, own = split_parts(written)
    every = tuple(dict.fromkeys((*own, *parts)))
    if not every:
        return file
    if posixpath.basename(file) not in WITH_PARTS:
        raise UsageError(
            f"`{file}` has no extras and no groups.",
            "Name a file that has: -d uv.lock, -d pyproject.toml or -d setup.py",
        )
    return f"{file}[{','.join(every)}]"
