"""Where a path leads. Python's own `os.path.realpath` calls itself for each link of a chain, in older versions, and
ends where a clone or a script made a thousand. The client uses this too, on every system."""

import os
import stat
from typing import Optional, Union

MOST_LINKS = 40
"""On one way, as in Linux: a program that opens a longer one gets an error."""


def real_path(path: "Union[str, os.PathLike[str]]") -> str:
    """As `os.path.realpath`. A way over more links than `MOST_LINKS`, or in a circle, leads nowhere: the answer is the
    path itself, absolute, which no program can open."""
    named = os.path.join(os.getcwd(), path)
    if os.name == "nt":  # it has no such limit there
        return os.path.realpath(named)
    waiting, there, links = named.split("/")[::-1], "", 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            there = there.rpartition("/")[0]
        elif part not in ("", "."):
            step = "%s/%s" % (there, part)
            target = _target(step)
            if target is None:
                there = step
            elif links == MOST_LINKS:
                return named
            else:
                links += 1
                there = "" if target.startswith("/") else there
                waiting += target.split("/")[::-1]
    return there or "/"


def _target(path: str) -> Optional[str]:
    """What the link says; None for anything else."""
    try:
        return os.readlink(path) if stat.S_ISLNK(os.lstat(path).st_mode) else None
    except (OSError, ValueError):
        return None
