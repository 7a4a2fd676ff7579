"""What a run wrote: where its record has it, and how much of it comes home."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.frozen import dataclass

OUTPUTS, UPLOADS, FILES = "outputs", "uploads", "files"
FOLDERS = (OUTPUTS, UPLOADS, FILES)
"""Of a run at home: what its script wrote to `outputs/`, gave to `holdfast.upload()`, and wrote elsewhere in the
project. Links that a script made may lie there, if they stay inside."""
DEFAULT_LIMIT = 1_000_000_000
UNLIMITED = (1 << 63) - 1


class FileSize(NamedTuple):
    """`path` as people know it: relative to the project's top."""

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
    """Below the run's folder, of a file of its working folder."""
    return path if path.startswith(f"{OUTPUTS}/") else f"{FILES}/{path}"
