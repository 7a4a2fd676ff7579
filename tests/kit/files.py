"""Look into what a run has left on a disk, while others may still be taking files away."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def contents(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below the folders with what is in it; what is taken away meanwhile is passed over."""
    for folder in folders:
        for place, _, names in os.walk(folder):
            for path in (Path(place, name) for name in names):
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    if path.is_file():
                        yield path, path.read_bytes()


def holding(value: str, *folders: Path) -> list[Path]:
    """The files in which the value stands."""
    return [path for path, data in contents(*folders) if value.encode() in data]
