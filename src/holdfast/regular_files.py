"""Files that somebody else may have made, read without surprises: only regular ones, and only so much of them."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.farside.system.harmless import pasted

_EXTRA = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)

LARGEST_RECORD = 64_000_000
"""Bytes of what a host may have written: a record of a run, a lock."""


class NotJson(ValueError):
    """Also of JSON that is nested too deep for Python to read."""


def read_json(path: Path | str, most: int, follows_link: bool = True) -> Any:
    """What the JSON in the file says, of any shape. Raises OSError as `read_regular` does, and NotJson."""
    data = read_regular(path, most, follows_link)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def read_regular(path: Path | str, most: int, follows_link: bool = True) -> bytes:
    """What is in the file. Raises OSError for one that is not there, has more than `most` bytes, or is a folder, a FIFO
    or a device: it never waits for one. `follows_link`: `path` itself may be a link to a regular file."""
    with os.fdopen(open_regular(path, follows_link=follows_link), "rb") as source:
        data = source.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most} bytes", str(path))
    return data


def text_if_there(path: Path | str, most: int) -> str:
    """The file as text, whatever bytes it has; empty where `read_regular` raises."""
    try:
        return read_regular(path, most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def open_regular(path: Path | str, flags: int = os.O_RDONLY, follows_link: bool = True, mode: int = 0o666) -> int:
    """A descriptor of a regular file; the same holds for links and for what is no file. `mode`: of one that is made."""
    if not follows_link and os.path.islink(path):  # Windows has no O_NOFOLLOW
        raise OSError(errno.ELOOP, "is a link", str(path))
    descriptor = os.open(path, flags & ~os.O_TRUNC | _EXTRA | (0 if follows_link else _NO_LINK), mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def odd_entry_in(folder: Path | str, within: Sequence[str] = ()) -> str | None:
    """The first link or special file, such as a pipe, in the folder or in those `within` it, or that path itself where
    it is a link. None also where the folder is not there or cannot be listed: it cannot be used either."""
    try:
        if os.path.islink(folder):
            return os.fspath(folder)
        inner = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                    return entry.path
                if entry.name in within:
                    inner.append(entry.path)
    except OSError:
        return None
    return next((found for each in inner if (found := odd_entry_in(each)) is not None), None)


def what_is_odd(path: str, first: str = "") -> tuple[str, str]:
    """A sentence about a link or an entry that `odd_entry_in` found, and the remedy. `first`: the beginning of the
    command that removes it."""
    what = "is a link, and Holdfast follows none here" if os.path.islink(path) else "is neither a file nor a folder"
    return f"`{path}` {what}.", f"Remove it: {first}rm {pasted(path)}\nThen check what created it."
