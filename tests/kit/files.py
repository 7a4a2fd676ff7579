"""Read what a run has left on a disk, while other processes may still remove files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def contents(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below the folders with its content; files that are removed meanwhile are skipped."""
    for folder in folders:
        for place, _, names in os.walk(folder):
            for path in (Path(place, name) for name in names):
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    if path.is_file():
                        yield path, path.read_bytes()


def holding(value: str, *folders: Path) -> list[Path]:
    """The files that contain the value."""
    return [path for path, data in contents(*folders) if value.encode() in data]
