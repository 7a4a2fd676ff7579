"""Files that `.gitignore` keeps here and that a script may need: those beside shipped ones that are no cache, build,
environment or secret, in groups.

Only folders with shipped files are listed, and an ignored folder only so far, so that a million ignored files cost
nothing: the sizes are then said as `at least`.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass, replace
from holdfast.project.include_wishes import as_typed
from holdfast.project.quantities import format_size
from holdfast.shown_text import one_line, pasted
from holdfast.snapshots.file_kinds import CACHES, is_made_again, is_secret
from holdfast.snapshots.ignore import own_rules
from holdfast.snapshots.patterns import typed_line
from holdfast.snapshots.walk import Layer
from holdfast.snapshots.warnings import BETTER_AS_DATA

_NAMED, _GROUPS = 3, 4
"""So many names of a group, and so many groups, are said one by one."""
_ENVIRONMENT_MARKS = frozenset(("pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"))


@dataclass(frozen=True)
class LookLimits:
    """How many folders with shipped files are listed, how many entries of them and of ignored folders are looked at,
    and the seconds for both."""

    folders: int = 300
    listed: int = 20_000
    measured: int = 2000
    seconds: float = 0.1


@dataclass(frozen=True)
class IgnoredGroup:
    """`names` are files in `folder` (empty: the project's top); without any, all of the folder is meant. `is_part`:
    there is more than was counted. `globs` take it in."""

    folder: str
    names: tuple[str, ...]
    count: int
    size: int
    is_part: bool
    globs: tuple[str, ...]

    @property
    def entries(self) -> tuple[str, ...]:
        """What it is remembered by."""
        return tuple(_join(self.folder, name) for name in self.names) or (f"{self.folder}/",)

    @property
    def is_large(self) -> bool:
        """Better sent once per machine than with each snapshot."""
        return self.is_part or self.size > BETTER_AS_DATA.bytes or self.count > BETTER_AS_DATA.files

    @property
    def data_folder(self) -> str:
        """For `--data`."""
        return self.folder or self.names[0]

    def shown(self) -> str:
        """`data/chars/{meta.pkl,train.bin}`, with `…` for more names."""
        names = [*self.names[:_NAMED], *(["…"] if len(self.names) > _NAMED else [])]
        listed = f"{{{','.join(names)}}}" if len(names) > 1 else "".join(names)
        return one_line(f"{self.folder}/{listed}" if self.folder else listed)

    def amount(self) -> str:
        return f"{'at least ' if self.is_part else ''}{format_size(self.size)}"


@dataclass(frozen=True)
class Ignored:
    """`is_part`: there may be more groups, in folders that were not looked at."""

    groups: tuple[IgnoredGroup, ...] = ()
    is_part: bool = False


def find_ignored(
    root: Path,
    shipped: Collection[str],
    known: Collection[str] = (),
    limits: LookLimits = LookLimits(),  # noqa: B008 - frozen
) -> Ignored:
    """`shipped` are paths of the snapshot. A group of which `known` has all entries is left out, and costs nothing."""
    look = _Look(root, shipped, limits)
    found = [each for folder in look.folders() for each in look.groups_in(folder, known)]
    return Ignored(tuple(_merged(sorted(found, key=lambda each: each.entries))), look.is_part)


def group_of(root: Path, shipped: Collection[str], path: str) -> IgnoredGroup:
    """With the file or folder `path`, which is here and not in the snapshot: all that is ignored beside it, or the
    highest folder above it of which nothing ships."""
    look = _Look(root, shipped, LookLimits(seconds=1.0))
    parts = path.split("/")
    folders = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    top = next((each for each in folders if each not in look.with_files), path)
    if os.path.isdir(look.whole(top)) and not os.path.islink(look.whole(top)):
        whole = look.measured(top)
        if not whole.is_large or os.path.dirname(path) in ("", top) or not os.path.isfile(look.whole(path)):
            return whole
        beside = look.measured(os.path.dirname(path))
        return whole if beside.is_large else beside
    folder, _, name = path.rpartition("/")
    return next((each for each in look.groups_in(folder, ()) if name in each.names), look.alone(folder, name))


def summary(groups: Sequence[IgnoredGroup], is_part: bool = False) -> str:
    """`3 ignored files stay here: data/chars/{meta.pkl,train.bin,val.bin}, 1.1 MB`."""
    count, size = sum(each.count for each in groups), sum(each.size for each in groups)
    least = "At least " if is_part or any(each.is_part for each in groups) else ""
    files = "ignored file stays" if count == 1 and not least else "ignored files stay"
    listed = " and ".join(each.shown() for each in groups[:_GROUPS])
    if len(groups) > 2:
        listed = ", ".join(f"{each.shown()} ({each.amount()})" for each in groups[:_GROUPS])
    more = len(groups) - _GROUPS
    listed += f" and {more} more" if more > 0 else ""
    return f"{least}{count:,} {files} here: {listed}, {format_size(size)}"


def options(globs: Iterable[str], folder: str = "") -> str:
    """What to type after `submit`, in `folder`, to ship them."""
    return " ".join(f"--include {pasted(as_typed(each, folder))}" for each in globs)


class _Look:
    """One look at the folders of the project."""

    def __init__(self, root: Path, shipped: Collection[str], limits: LookLimits) -> None:
        self._root, self._limits = real_path(root), limits
        self._shipped = shipped if isinstance(shipped, (set, frozenset, dict)) else frozenset(shipped)
        self._own: Layer = own_rules(root)
        self._ends = time.monotonic() + limits.seconds
        self._listed, self._left = limits.listed, limits.measured
        self.is_part = False
        self.with_files = {""}
        for folder in {path.rpartition("/")[0] for path in self._shipped}:
            above = folder
            while above not in self.with_files:
                self.with_files.add(above)
                above = above.rpartition("/")[0]

    def whole(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def folders(self) -> list[str]:
        """Those with shipped files, the highest first."""
        found = sorted(self.with_files, key=lambda each: (each.count("/") + bool(each), each))
        self.is_part |= len(found) > self._limits.folders
        return found[: self._limits.folders]

    def groups_in(self, folder: str, known: Collection[str]) -> Iterator[IgnoredGroup]:
        names, sizes, folders, is_alone = list[str](), list[int](), list[str](), bool(folder)
        for entry in self._strange_entries(folder):
            path = _join(folder, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            is_alone &= not is_folder or entry.name in CACHES
            if is_folder and path in self.with_files:
                continue
            if self._is_unneeded(path, entry, is_folder):
                is_alone = False
            elif is_folder:
                folders.append(path)
            else:
                names.append(entry.name)
                sizes.append(_size(entry))
        if names and not all(_join(folder, name) in known for name in names):
            pairs = sorted(zip(names, sizes, strict=True))
            names, total = [name for name, _ in pairs], sum(sizes)
            yield IgnoredGroup(folder, tuple(names), len(names), total, False, _globs(folder, names, is_alone))
        for path in sorted(folders):
            found = None if f"{path}/" in known else self.measured(path)
            if found is not None and (found.count or found.is_part):
                yield found

    def alone(self, folder: str, name: str) -> IgnoredGroup:
        """Of a file that no question is about: a secret, a cache."""
        try:
            size = os.lstat(self.whole(_join(folder, name))).st_size
        except OSError:
            size = 0
        return IgnoredGroup(folder, (name,), 1, size, False, _globs(folder, [name], False))

    def measured(self, top: str) -> IgnoredGroup:
        """All of an ignored folder, as far as the limits let it be counted."""
        count = size = 0
        glob = typed_line(os.fsencode(top)) + "/"
        found = IgnoredGroup(top, (), 0, 0, False, (glob if "/" in top else f"/{glob}",))
        pending = [top]
        while pending:
            folder = pending.pop()
            for entry in self._scan(folder):
                self._left -= 1
                if self._left < 0 or (self._left % 256 == 0 and time.monotonic() > self._ends):
                    return replace(found, count=count, size=size, is_part=True)
                if entry.name in _ENVIRONMENT_MARKS and folder == top:
                    return found
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name in CACHES or is_secret(entry.name):
                    continue
                if is_folder:
                    pending.append(entry.path[len(self._root) + 1 :])
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    count, size = count + 1, size + _size(entry)
        return replace(found, count=count, size=size)

    def _strange_entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Of a folder with shipped files, those that do not ship."""
        if self._listed < 0 or time.monotonic() > self._ends:
            self.is_part = True
            return []
        try:
            with os.scandir(self.whole(folder)) as scan:
                entries = list(itertools.islice(scan, self._listed + 1))
        except OSError:
            return []
        self._listed -= len(entries)
        shipped, start = self._shipped, f"{folder}/" if folder else ""
        return [entry for entry in entries if start + entry.name not in shipped]

    def _scan(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.whole(folder)) as scan:
                yield from scan
        except OSError:
            return  # what cannot be read cannot ship

    def _is_unneeded(self, path: str, entry: os.DirEntry[str], is_folder: bool) -> bool:
        if is_made_again(entry.name) or is_secret(entry.name) or reserved_path([path]) is not None:
            return True
        if not is_folder and not entry.is_file(follow_symlinks=False):
            return True
        whole = os.fsencode(f"{self._root}/{path}")
        rule = self._own.decide(whole, os.fsencode(entry.name), is_folder)
        return rule is not None and not rule.negated  # left out for Holdfast's sake, by its own file


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def _globs(folder: str, names: Sequence[str], is_alone: bool) -> tuple[str, ...]:
    """The fewest that take in these files and nothing else that is ignored. `is_alone`: nothing lies beside them."""
    start = f"{typed_line(os.fsencode(folder))}/" if folder else "/"
    if is_alone and len(names) > 1:
        return (f"{start}*",)
    if len(names) <= _NAMED:
        return tuple(start + typed_line(os.fsencode(name)) for name in names)
    return tuple(dict.fromkeys(start + _ending(name) for name in names))


def _ending(name: str) -> str:
    """`*.bin`, or the name itself if it has no ending."""
    stem, ending = os.path.splitext(name)
    return f"*{typed_line(os.fsencode(ending))}" if stem and ending else typed_line(os.fsencode(name))


def _merged(groups: list[IgnoredGroup]) -> list[IgnoredGroup]:
    """Many small groups below one folder become one."""
    if len(groups) <= _GROUPS:
        return groups
    found: dict[str, list[IgnoredGroup]] = {}
    for each in groups:
        top = each.folder.partition("/")[0]
        found.setdefault(top if each.names and top else "/".join(each.entries), []).append(each)
    return [together[0] if len(together) == 1 else _merge(top, together) for top, together in found.items()]


def _merge(top: str, groups: list[IgnoredGroup]) -> IgnoredGroup:
    names = tuple(entry[len(top) + 1 :] for each in groups for entry in each.entries)
    base = typed_line(os.fsencode(top))
    globs = dict.fromkeys(f"{base}/**/{_ending(name.rpartition('/')[2])}" for name in names)
    return IgnoredGroup(top, names, len(names), sum(each.size for each in groups), False, tuple(globs))


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
