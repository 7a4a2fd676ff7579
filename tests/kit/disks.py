"""Disks without room, and small ones."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


def fill(folder: Path) -> Path:
    """Fill all free space there with one file, and return it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return filler


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount a file system of this many megabytes at an empty folder. Raises CalledProcessError if that is not
    allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    what = ["-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs"]
    subprocess.run(["mount", *what, str(folder)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def resize(folder: Path, megabytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={megabytes}m", str(folder)], check=True)
