"""What a snapshot warns of, and how a path is shown: large paths, Git LFS pointers, links that leave the project."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Sequence

from holdfast.frozen import dataclass
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.snapshots.git_process import GitBusyError, GitError, GitStuckError, GitTooLargeError
from holdfast.snapshots.large_trees import MANY_FILES, MUCH
from holdfast.snapshots.patterns import typed_line

LARGE = 100_000_000


@dataclass(frozen=True)
class Amount:
    bytes: int
    files: int


BETTER_AS_DATA = Amount(bytes=MUCH, files=MANY_FILES)
"""A folder with more than one of these is better sent once per machine, with `--data`, than kept in snapshots."""
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
LFS_POINTER_LIMIT = 1024
"""A pointer file is always smaller than this, says the specification of Git LFS."""

_NAMED = 3
"""So many large files or pointers are named one by one; more become one sentence."""

Row = tuple[str, str, str, int]


@dataclass(frozen=True)
class SnapshotWarning:
    """`path` is relative to the project; `remedy` is what to type or which line to change."""

    path: str
    message: str
    remedy: str


def shown(path: str) -> str:
    """A path for people: in backticks, on one line, without bytes that a terminal cannot print."""
    if path.isprintable():
        return f"`{path}`"
    escaped = "".join(each if each.isprintable() else _escape(each) for each in path)
    return f"`{escaped}`"


def _escape(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"  # a byte that is not UTF-8, as `os.fsdecode` keeps it
    return character.encode("unicode_escape").decode("ascii")


def special_file(path: str) -> SnapshotWarning:
    remedy = "Write {line} into .amlignore to leave it out without this note."
    return _left_out(path, "is a socket, a pipe or a device", remedy)


def unreadable_file(path: str, error: OSError) -> SnapshotWarning:
    remedy = "Make it readable (chmod u+r), or write {line} into .amlignore."
    return _left_out(path, f"cannot be read ({error.strerror})", remedy)


def unlisted_by_git(path: str, folder: str, failure: GitError) -> SnapshotWarning:
    """`folder`: the repository, as a command there has it."""
    reason = str(failure)
    if isinstance(failure, GitBusyError):
        remedy = f"Look for patterns with many `**`: grep -r --include=.gitignore '[*][*].*[*][*]' {pasted(folder)}"
    elif isinstance(failure, GitTooLargeError):
        remedy = f"Run no git there before you know why. Large rules: find {pasted(folder)} -name .gitignore -size +1M"
    elif isinstance(failure, GitStuckError):
        remedy = f"Git is waiting for a pipe. Find it with `find {pasted(folder)} -type p`, then remove it."
    elif "dubious ownership" in reason or "safe.directory" in reason:
        remedy = f"git config --global --add safe.directory {pasted(folder)}"
    else:
        remedy = "Type `git status` there to see what git wants."
    message = f"git could not list the files ({reason}); the .gitignore files were read without it."
    return SnapshotWarning(path, message, remedy)


def reserved_name(path: str) -> SnapshotWarning:
    message = f"{shown(path)} is left out: git or Holdfast keeps the name for itself on some disks."
    return SnapshotWarning(path, message, "Give it another name to ship it.")


def secret_kept_back(path: str) -> SnapshotWarning:
    message = f"{shown(path)} looks like a secret, so it stays here."
    return SnapshotWarning("", message, f"To ship it: --include {pasted(typed_line(os.fsencode(path)))}")


def content_warnings(rows: Sequence[Row], pointers: Iterable[str]) -> tuple[SnapshotWarning, ...]:
    return (*_large(rows), *_pointers(sorted(pointers)), *_links(rows))


def _left_out(path: str, why: str, remedy: str) -> SnapshotWarning:
    """`remedy` has `{line}` where the path as a line of .amlignore stands."""
    line = f"`/{typed_line(os.fsencode(path))}`"
    return SnapshotWarning(path, f"{shown(path)} {why} and is left out.", remedy.format(line=line))


def _large(rows: Sequence[Row]) -> Iterable[SnapshotWarning]:
    if len(rows) <= BETTER_AS_DATA.files and sum(row[3] for row in rows) <= LARGE:
        return
    sizes: defaultdict[str, int] = defaultdict(int)
    counts: defaultdict[str, int] = defaultdict(int)
    files: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        folder, slash, _ = row[0].partition("/")
        place = folder + slash
        sizes[place] += row[3]
        counts[place] += 1
        if row[3] > LARGE:
            files[place].append(row)
    for place in sorted(sizes):
        large = files[place]
        rest = sizes[place] - sum(row[3] for row in large)
        if place.endswith("/") and (
            rest > LARGE
            or len(large) > _NAMED
            or sizes[place] > BETTER_AS_DATA.bytes
            or counts[place] > BETTER_AS_DATA.files
        ):
            yield _large_folder(place, sizes[place], counts[place])
        else:
            for row in large:
                yield _large_path(row[0], format_size(row[3]))


def _large_folder(place: str, size: int, count: int) -> SnapshotWarning:
    about = _large_path(place, f"{format_size(size)} in {count:,} file{'' if count == 1 else 's'}")
    if size <= BETTER_AS_DATA.bytes and count <= BETTER_AS_DATA.files:
        return about
    name = place.removesuffix("/")
    better = f"To send it once per machine instead, leave it out and add: --data {pasted(f'{name}:{name}')}"
    return SnapshotWarning(about.path, about.message, f"{about.remedy}\n{better}")


def _large_path(path: str, amount: str) -> SnapshotWarning:
    line = typed_line(os.fsencode(path))
    return SnapshotWarning(
        path.removesuffix("/"),
        f"{shown(path)} has {amount} and is part of the snapshot.",
        f"To leave it out, write this line into .amlignore: /{line}",
    )


def _pointers(paths: Sequence[str]) -> Iterable[SnapshotWarning]:
    if not paths:
        return
    names = ", ".join(shown(path) for path in paths[:_NAMED])
    more = len(paths) - _NAMED
    if more > 0:
        names += f" and {more} more"
    verb = (
        "is a Git LFS pointer and not the file itself" if len(paths) == 1 else "are Git LFS pointers and not the files"
    )
    yield SnapshotWarning(paths[0], f"{names} {verb}.", "git lfs pull")


def _links(rows: Iterable[Row]) -> Iterable[SnapshotWarning]:
    for path, kind, target, _size in rows:
        if kind != "l" or not _leaves(path, target):
            continue
        yield SnapshotWarning(
            path,
            f"The link {shown(path)} leads out of the project, to {shown(target)}, which does not ship.",
            "A run on this machine sees what is there at that time; copy it into the project to keep it.",
        )


def _leaves(path: str, target: str) -> bool:
    if target.startswith("/"):
        return True
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target)).split("/")[0] == ".."
