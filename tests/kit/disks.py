"""Disks without room, and small ones."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
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


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A file system of so many megabytes at an empty folder. CalledProcessError where that may not be done."""
    folder.mkdir(parents=True, exist_ok=True)
    what = ["-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs"]
    subprocess.run(["mount", *what, str(folder)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def resize(folder: Path, megabytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={megabytes}m", str(folder)], check=True)
