"""Whether git tracks files of a folder, from its index alone: every command that uses `.holdfast/` asks this, and a
process would cost more than all the rest."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.regular_files import open_regular, read_regular

_MOST = 1 << 12
_LONGEST = 0xFFF
"""Git writes a longer name's length as this."""


def tracks_below(folder: Path) -> bool:
    """False where there is no work tree, or its index cannot be read."""
    top = _work_tree(folder.parent)
    if top is None:
        return False
    prefix = folder.relative_to(top).as_posix().encode("utf-8", "surrogateescape") + b"/"
    try:
        return any(_names(each, prefix) for each in _indexes(top / ".git"))
    except OSError:
        return False


def _work_tree(folder: Path) -> Path | None:
    for each in (folder, *folder.parents):
        if os.path.lexists(each / ".git"):
            return each
    return None


def _indexes(git: Path) -> Iterator[Path]:
    """The index, and the one that it shares entries with if it is split."""
    if git.is_file():  # of a linked work tree or a submodule: the file names the real folder
        named = read_regular(git, _MOST).decode("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
        git = git.parent / named
    yield git / "index"
    yield from git.glob("sharedindex.*")


def _names(index: Path, prefix: bytes) -> bool:
    """Each entry is its name after a field of flags, whose low bits are the name's length. Since version 4 of the
    format a name shares its beginning with the one before, so that any trace counts."""
    try:
        descriptor = open_regular(index)
    except FileNotFoundError:
        return False
    try:
        if os.fstat(descriptor).st_size < len(prefix):
            return False
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
            if data[4:8] == b"\0\0\0\4":
                return data.find(prefix.rpartition(b".holdfast")[1] + b"/") >= 0
            place = data.find(prefix)
            while place >= 0:
                length = min(data.find(b"\0", place) - place, _LONGEST)
                flags = [int.from_bytes(data[at : at + 2], "big") & _LONGEST for at in (place - 2, place - 4)]
                if length in flags:
                    return True
                place = data.find(prefix, place + 1)
            return False
    finally:
        os.close(descriptor)
