"""A project that has much to be read: noticed before it is, as the wrong folder may have been taken for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from holdfast.frozen import dataclass
from holdfast.snapshots.patterns import typed_line

MANY_FILES, MUCH = 20_000, 200_000_000
_NAMED, _WORTH_NAMING = 3, 20
"""So many entries, with at least a twentieth of the whole."""


@dataclass(frozen=True)
class LargeFolder:
    """An entry of the project's top: a folder's `path` ends with `/`."""

    path: str
    files: int
    bytes: int


@dataclass(frozen=True)
class LargeTree:
    """What is about to be read, and where most of it is, the largest first."""

    files: int
    bytes: int
    largest: tuple[LargeFolder, ...]

    @property
    def is_large(self) -> bool:
        """By bytes; else there are many files."""
        return self.bytes > MUCH

    @property
    def line(self) -> str:
        """The line of `.amlignore` that leaves the largest out."""
        return f"/{typed_line(os.fsencode(self.largest[0].path))}"


def large_tree(base: str, paths: Sequence[str]) -> LargeTree | None:
    """None where the files with these `paths`, relative to `base`, are neither many nor large. They are not opened."""
    found: dict[str, list[int]] = {}
    for path in paths:
        try:
            status = os.lstat(f"{base}/{path}")
        except (OSError, ValueError):
            continue  # who reads it says why
        if stat.S_ISREG(status.st_mode):
            folder, slash, _ = path.partition("/")
            sums = found.setdefault(folder + slash, [0, 0])
            sums[0] += 1
            sums[1] += status.st_size
    files, size = (sum(sums[index] for sums in found.values()) for index in (0, 1))
    if files <= MANY_FILES and size <= MUCH:
        return None
    key, whole = (1, size) if size > MUCH else (0, files)
    ordered = sorted(found.items(), key=lambda entry: entry[1][key], reverse=True)[:_NAMED]
    largest = [entry for entry in ordered if entry[1][key] * _WORTH_NAMING >= whole]
    return LargeTree(files, size, tuple(LargeFolder(path, *sums) for path, sums in largest))
