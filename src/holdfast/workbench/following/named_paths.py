"""The files that a script missed, by the last words of its output: Python's, a shell's, or those of a library."""

from __future__ import annotations

import os
import re

from holdfast.frozen import dataclass

_LINES, _LONGEST_LINE, _NAMES = 40, 4096, 100
_PLAIN = (
    r"No such file or directory: b?'((?:[^'\\\n]|\\.)+)'",
    r"can't open file '([^'\n]+)'",
    r"(?<![^\s'\":])([^\s'\":]+): No such file or directory",
)
_MODULE = r"No module named '([A-Za-z0-9_.]+)'"
_ABOUT_FILES = re.compile(
    r"no such file|not found|n[o']t exist|not a file|not a directory|not a local folder|cannot |can't |could ?n[o']t "
    r"|unable to |failed to |missing|errno ?= ?2|error #?2",
    re.IGNORECASE,
)
"""Libraries say it in their own words: `cannot open x`, `x not found`. What they name counts if it is a file here."""
_QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"|`([^`\n]+)`")
_BETWEEN = re.compile(r"[\s'\"`,;:()<>\[\]{}=|]+")


@dataclass(frozen=True)
class NamedPath:
    """`path` as the output has it. `is_certain`: the words say that this path was not there. `is_module`: it may be the
    file of a module that was missing."""

    path: str
    is_certain: bool
    is_module: bool = False


def named_paths(text: str) -> list[NamedPath]:
    """The last mentioned first, and those that are certain before all others."""
    modules = list[str]()
    certain = [name for pattern in _PLAIN for name in re.findall(pattern, text)]
    for module in re.findall(_MODULE, text):
        path = module.replace(".", "/")
        names = (path.split("/")[0], path, f"{path}/__init__.py", f"{path}.py")
        modules += [f"{start}{name}" for start in ("src/", "") for name in names]
    likely = list[str]()
    for line in text.splitlines()[-_LINES:]:
        if _ABOUT_FILES.search(line[:_LONGEST_LINE]):
            likely += _names_in(line[:_LONGEST_LINE])
    found = {name: NamedPath(name, True) for name in certain[::-1]}
    for name in modules[::-1]:
        found.setdefault(name, NamedPath(name, False, is_module=True))
    for name in likely[::-1]:
        found.setdefault(name, NamedPath(name, False))
    return list(found.values())[:_NAMES]


def inside(name: str, there: str, folder: str) -> str | None:
    """Relative to the project; None for a path outside of it. `there` is before it in the words of the run's machine;
    `folder` is where the run started."""
    below = name.partition(there)[2]
    normal = os.path.normpath(below or os.path.join(folder, name))
    return None if os.path.isabs(normal) or normal.split("/")[0] == ".." or "\0" in normal else normal


def _names_in(line: str) -> list[str]:
    quoted = ["".join(groups) for groups in _QUOTED.findall(line)]
    words = [word.rstrip(".") for word in _BETWEEN.split(line)]
    return [*quoted, *(word for word in words if "/" in word.strip("/") or "." in word.strip("."))]
