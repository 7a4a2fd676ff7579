"""What a run wrote: where its record has it, and how much of it comes home."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.frozen import dataclass

OUTPUTS, UPLOADS, FILES, ABOVE = "outputs", "uploads", "files", "above"
FOLDERS = (OUTPUTS, UPLOADS, FILES, ABOVE)
"""Of a run at home: what its script wrote to `outputs/`, gave to `holdfast.upload()`, wrote elsewhere in the project,
and beside it: `../x` is `above/1/x`, `../../x` is `above/2/x`. Links that a script made may lie there, if they stay
inside."""
DEFAULT_LIMIT = 1_000_000_000
UNLIMITED = (1 << 63) - 1
_MOST_ABOVE = 20


class FileSize(NamedTuple):
    """`path` as people know it: relative to the project's top, `../x` for what lies beside it."""

    path: str
    size: int


@dataclass(frozen=True)
class OutputWishes:
    """What comes home by itself of files outside `outputs/`: those that `globs` take in, as lines of a `.gitignore`
    (none: all), the smallest first, until they have `limit` bytes."""

    globs: tuple[str, ...] = ()
    limit: int = DEFAULT_LIMIT


@dataclass(frozen=True)
class LeftThere:
    """Files of a run that are only on its machine: how many, their bytes, and the first of them."""

    files: tuple[FileSize, ...] = ()
    count: int = 0
    size: int = 0


def path_at_home(path: str) -> str:
    """Below the run's folder, of a file of its working tree."""
    if path.startswith("../"):
        return path_inside(path)
    return path if path.startswith(f"{OUTPUTS}/") else f"{FILES}/{path}"


def path_inside(path: str) -> str:
    """For a folder that takes in what lay beside the project too: `../x` is `above/1/x` there."""
    rest, level = path, 0
    while rest.startswith("../"):
        rest, level = rest.removeprefix("../"), level + 1
    return f"{ABOVE}/{level}/{rest}" if level else path


def path_in_project(near: str) -> str:
    """As people know it, of a file by its path below the run's folder."""
    top, _, rest = near.partition("/")
    level, _, name = rest.partition("/")
    if top == ABOVE and name and level.isdecimal() and 0 < int(level) <= _MOST_ABOVE:
        return "../" * int(level) + name
    return rest if top == FILES else near


def folder_of_links(near: str) -> str:
    """The one that a link at this path below the run's folder must not leave."""
    return "/".join(near.split("/")[: 2 if near.startswith(f"{ABOVE}/") else 1])
