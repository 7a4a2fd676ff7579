"""Disks without room."""

from __future__ import annotations

from pathlib import Path


def fill(folder: Path) -> Path:
    """Take every byte that is free there, by one file, which is returned."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return filler
