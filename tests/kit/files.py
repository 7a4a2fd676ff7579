"""Look into what a run has left on a disk, while others may still be taking files away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


def contents(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below the folders with what is in it; one that is taken away meanwhile is passed over."""
    for folder in folders:
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    yield path, path.read_bytes()


def holding(value: str, *folders: Path) -> list[Path]:
    """The files in which the value stands."""
    return [path for path, data in contents(*folders) if value.encode() in data]
