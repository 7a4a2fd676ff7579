"""Which links may lie among a run's files at home: those that stay in the folder, whatever links and `..` are on the
way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MOST_STEPS = 10_000
"""A way that takes more parts than that leads in a circle, or is made to look so."""


class LeavingLink(NamedTuple):
    """`path` is below the folder, with slashes; `target` is what the link says."""

    path: str
    target: str


def remove_leaving(top: Path) -> Iterator[LeavingLink]:
    """Remove links in the folder that lead out of it, and name them. What stands in the place of the folder itself, if
    that is no folder, is left as it is."""
    if top.is_symlink():
        return
    waiting = [os.fspath(top)]
    while waiting:
        links, folders = _links_and_folders(waiting.pop())
        waiting += reversed(folders)
        for link in map(Path, links):
            if leads_out(top, link.relative_to(top).parts):
                target = os.readlink(link)
                link.unlink()
                yield LeavingLink(link.relative_to(top).as_posix(), target)


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


def leads_out(top: Path, parts: tuple[str, ...]) -> bool:
    """Whether the way to `parts` below the folder leaves it, part by part. One that ends nowhere does not."""
    waiting, there = list(reversed(parts)), list[str]()
    for _ in range(_MOST_STEPS):
        if not waiting:
            return False
        part = waiting.pop()
        if part == "..":
            if not there:
                return True
            there.pop()
        elif part not in ("", "."):
            target = _target(top.joinpath(*there, part))
            if target is None:
                there.append(part)
            elif is_absolute(target):
                return True
            else:
                waiting += reversed(target.replace(os.sep, "/").split("/"))
    return True


def is_absolute(target: str) -> bool:
    """Or relative to a drive, or to the root of one."""
    return target.startswith(("/", os.sep)) or bool(os.path.splitdrive(target)[0])


def _target(path: Path) -> str | None:
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        return None
