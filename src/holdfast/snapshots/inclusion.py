"""Which lines of `.amlignore` let a file back into the snapshot. Each answer is tried out before it is given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from holdfast.farside.system.real_paths import real_path
from holdfast.snapshots.ignore import explain, list_files, up_to_link
from holdfast.snapshots.patterns import typed_line, with_slashes
from holdfast.snapshots.warnings import LARGE

Lines = tuple[str, ...]


def lines_to_ship(root: Path, relative_path: str, environment: Mapping[str, str] | None = None) -> Lines:
    """Lines that, at the end of `.amlignore`, let this file or folder in; none when no line can.

    The shortest, unless they bring more than 100 MB along that were not asked for. Whatever ships without them
    ships with them too.
    """
    relative = with_slashes(os.fsencode(os.path.normpath(relative_path)))
    wanted = os.fsdecode(up_to_link(os.fsencode(real_path(root)), relative))
    before = frozenset(list_files(root, environment).paths)
    heavy: Lines = ()
    for lines in _candidates(root, wanted, environment):
        found = frozenset(list_files(root, environment, os.fsencode("\n".join(lines))).paths)
        if not before <= found or not any(_is_wanted(path, wanted) for path in found):
            continue
        if not _is_much(root, (path for path in found - before if not _is_wanted(path, wanted))):
            return lines
        heavy = heavy or lines
    return heavy


def _candidates(root: Path, wanted: str, environment: Mapping[str, str] | None) -> Iterator[Lines]:
    parts = wanted.split("/")
    folders = ["/".join(parts[:count]) for count in range(1, len(parts))]
    is_folder = os.path.isdir(root / wanted) and not os.path.islink(root / wanted)
    last = _line("!", wanted, "/" if is_folder else "")
    starts = _starts(root, folders, environment)
    for start in starts:
        opened = [_line("!", folder, "/") for folder in folders[start:]]
        if opened:
            yield (opened[0],)
        yield (*opened, last)
    for start in starts:  # the same, with all that lies beside the way left out again
        pairs = [(_line("!", folder, "/"), _line("", folder, "/*")) for folder in folders[start:]]
        yield (*(line for pair in pairs for line in pair), last)


def _starts(root: Path, folders: list[str], environment: Mapping[str, str] | None) -> Iterable[int]:
    """Which folder on the way is the first that a rule leaves out: the likely answer, then all others.

    Only likely, because no rule is named for a folder in which git tracks a file.
    """
    likely = next((place for place, folder in enumerate(folders) if explain(root, folder, environment)), len(folders))
    return tuple(dict.fromkeys((likely, *range(len(folders), -1, -1))))


def _is_wanted(path: str, wanted: str) -> bool:
    return path == wanted or path.startswith(wanted + "/")


def _is_much(root: Path, paths: Iterable[str]) -> bool:
    total = 0
    for path in paths:
        try:
            total += os.lstat(root / path).st_size
        except OSError:
            continue
        if total > LARGE:
            return True
    return False


def _line(sign: str, path: str, end: str) -> str:
    return f"{sign}/{typed_line(os.fsencode(path))}{end}"
