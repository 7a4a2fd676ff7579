"""Which links may lie among a run's files at home: those that stay in the folder, whatever links and `..` are on the
way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LONGEST = 4096
"""Characters of a path below the folder: no program can name a longer one."""


class LeavingLink(NamedTuple):
    """`path` is below the folder, with slashes; `target` is what the link says."""

    path: str
    target: str


def remove_leaving(top: Path) -> Iterator[LeavingLink]:
    """Remove links in the folder that lead out of it, and name them. What stands in the place of the folder itself, if
    that is no folder, is left as it is."""
    if top.is_symlink():
        return
    waiting, ways = [os.fspath(top)], _Ways(top)
    while waiting:
        links, folders = _links_and_folders(waiting.pop())
        waiting += reversed(folders)
        for link in map(Path, links):
            path = link.relative_to(top).as_posix()
            if ways.lead_out(path):
                target = os.readlink(link)
                link.unlink()
                yield LeavingLink(path, target)


def _links_and_folders(place: str) -> tuple[list[str], list[str]]:
    """Sorted. Other files are only listed, not looked at: there may be many."""
    links, folders = list[str](), list[str]()
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.is_symlink():
                links.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return sorted(links), sorted(folders)


class _Ways:
    """Where links below a folder lead. Each is read once, however many others lead over it."""

    def __init__(self, top: Path) -> None:
        self._top = os.fspath(top)
        self._ends: dict[str, str | None] = {}
        """By the place of a link, `/a/b` below the folder. None: it leads out, in a circle, or is on the way now."""

    def lead_out(self, path: str) -> bool:
        """Whether the way to `path` leaves the folder, part by part. One that ends nowhere does not."""
        waiting, there = path.split("/")[::-1], ""
        while waiting:
            part = waiting.pop()
            step = f"{there}/{part}"
            if part.startswith("/"):  # no name, but a link, whose end is reached
                self._ends[part] = there
            elif part == "..":
                if not there:
                    return True
                there = there.rpartition("/")[0]
            elif part in ("", "."):
                continue
            elif len(step) > _LONGEST:
                return True
            elif step in self._ends or (target := _target(self._top + step)) is None:
                end = self._ends.get(step, step)
                if end is None:
                    return True
                there = end
            elif is_absolute(target):
                return True
            else:
                self._ends[step] = None
                waiting += [step, *target.replace(os.sep, "/").split("/")[::-1]]
        return False


def is_absolute(target: str) -> bool:
    """Or relative to a drive, or to the root of one."""
    return target.startswith(("/", os.sep)) or bool(os.path.splitdrive(target)[0])


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        return None
