"""Making room where environments are: by age, by a limit for the disk, and what nothing refers to any more. Never what
a run or a shell holds."""

import os
import time
from typing import Any, Dict, Iterator, List, Set, Tuple

from holdfast.farside import kernel
from holdfast.farside.environments.alone import alone, caches
from holdfast.farside.environments.building import read_mark
from holdfast.farside.environments.listing import last_use, names
from holdfast.farside.layout import BUILD_BYTE, Home
from holdfast.farside.refusal import Refused
from holdfast.farside.run.files import remove_tree, walk
from holdfast.farside.store.storage import remove

YOUNG = 3600.0
"""Seconds for which nothing is taken for unneeded: somebody may be about to use it."""
_ARCHIVES, _PACKAGES = "archive-v", "packages"
"""How folders of uv's cache and of conda's begin whose entries are unpacked packages: installers fetch one again that
is not there."""

Message = Dict[str, Any]
Inode = Tuple[int, int]


def trimmed(home: Home, message: Message) -> Dict[str, Any]:
    """Remove environments that nobody has used for `older` seconds; then, until environments and cache are below `keep`
    bytes, packages of the cache that no environment has, and environments, those used longest ago first. Last, notes
    and locks that lead to nothing. Answers with `[what, bytes]`, `[what, why it was kept]`, and the bytes left."""
    older, keep = message.get("older"), message.get("keep")
    removed: List[List[Any]] = []
    kept: List[List[str]] = []
    now = time.time()
    if older is not None:
        _remove_old(home, now - float(older), removed, kept)
    left = _Limit(home, int(keep), removed, kept).enforce() if keep is not None else None
    count, size = _sweep_unfinished(home, now)
    if count:
        removed.append(["what installers left unfinished", size])
    count, size = _sweep_notes(home, now, float(older or 0.0))
    if count:
        removed.append(["%d notes about environments" % count if count > 1 else "1 note about an environment", size])
    return {"removed": removed, "kept": kept, "left": left}


def _remove_old(home: Home, before: float, removed: List[List[Any]], kept: List[List[str]]) -> None:
    for name in names(home):
        if last_use(home, name) < before:
            _remove(home, name, removed, kept)


def _remove(home: Home, name: str, removed: List[List[Any]], kept: List[List[str]]) -> bool:
    try:
        removed.append(["environment " + name, remove(home, {"environment": name})["removed"]])
    except Refused as refusal:
        kept.append(["environment " + name, refusal.message])
        return False
    return True


class _Limit:
    """Environments and packages of the cache by their paths, each with the files that it has; many have the same."""

    def __init__(self, home: Home, keep: int, removed: List[List[Any]], kept: List[List[str]]) -> None:
        self._home, self._keep, self._removed, self._kept = home, keep, removed, kept
        self._sizes: Dict[Inode, int] = {}
        self._owners: Dict[Inode, int] = {}
        self._files: Dict[str, Set[Inode]] = {}
        self._total = 0

    def enforce(self) -> int:
        """Returns the bytes that are left."""
        self._look()
        if self._total > self._keep:
            self._drop_unused()
        for name in sorted(names(self._home), key=lambda name: last_use(self._home, name)):
            if self._total <= self._keep:
                break
            if _remove(self._home, name, self._removed, self._kept):
                self._forget(self._home.environment(name))
                self._drop_unused()
        return self._total

    def _look(self) -> None:
        for name in names(self._home):
            self._add(self._home.environment(name))
        units = list(_cached(self._home))
        for path in units:
            self._add(path)
        known = set(self._owners)
        rest = {(status.st_dev, status.st_ino): status.st_size for _, status in walk(self._home.cache(), [])}
        self._total += sum(size for inode, size in rest.items() if inode not in known)

    def _add(self, path: str) -> None:
        found = {(status.st_dev, status.st_ino): status.st_size for _, status in walk(path, [])}
        self._files[path] = set(found)
        for inode, size in found.items():
            self._owners[inode] = self._owners.get(inode, 0) + 1
            if self._owners[inode] == 1:
                self._sizes[inode] = size
                self._total += size

    def _forget(self, path: str) -> int:
        """Returns the bytes that this gave back."""
        freed = 0
        for inode in self._files.pop(path):
            self._owners[inode] -= 1
            if self._owners[inode] == 0:
                freed += self._sizes[inode]
        self._total -= freed
        return freed

    def _drop_unused(self) -> None:
        """From the cache, oldest first, what no environment has."""
        count = freed = 0
        with alone(self._home) as is_alone:
            for path in sorted(_cached(self._home), key=_changed) if is_alone else []:
                if self._total <= self._keep:
                    break
                if path in self._files and all(self._owners[inode] == 1 for inode in self._files[path]):
                    freed += self._forget(path)
                    remove_tree(path)
                    if os.path.exists(path + ".lock"):
                        os.unlink(path + ".lock")
                    count += 1
        if count:
            self._removed.append(["%d cached package%s" % (count, "" if count == 1 else "s"), freed])


def _cached(home: Home) -> Iterator[str]:
    for folder in _buckets(home):
        paths = [os.path.join(folder, name) for name in _names(folder) if not name.startswith(".")]
        yield from (path for path in paths if os.path.isdir(path) and not os.path.islink(path))


def _buckets(home: Home) -> List[str]:
    found = []
    for tool, beginning in [(name, _ARCHIVES) for name in caches(home)] + [("conda", _PACKAGES)]:
        folder = os.path.join(home.cache(), tool)
        found += [os.path.join(folder, name) for name in _names(folder) if name.startswith(beginning)]
    return found


def _sweep_unfinished(home: Home, now: float) -> Tuple[int, int]:
    """Folders in which an installer that was killed unpacked something, and locks of packages that are gone."""
    found = []
    for folder in [os.path.join(home.cache(), name) for name in caches(home)] + _buckets(home):
        paths = {name: os.path.join(folder, name) for name in _names(folder)}
        left = [path for name, path in paths.items() if name.startswith(".tmp")]
        ends = [path for name, path in paths.items() if name.endswith(".lock") and not name.startswith(".")]
        left += [path for path in ends if not os.path.exists(path[: -len(".lock")])]
        found += [path for path in left if now - _changed(path) >= YOUNG]
    if not found:
        return 0, 0
    count = size = 0
    with alone(home) as is_alone:
        for path in found if is_alone else []:
            size += sum(status.st_size for _, status in walk(path, []))
            if os.path.isdir(path) and not os.path.islink(path):
                remove_tree(path)
            else:
                os.unlink(path)
            count += 1
    return count, size


def _sweep_notes(home: Home, now: float, older: float) -> Tuple[int, int]:
    """Notes of which environment a lock became, where that is gone; locks of specs that no environment has and nobody
    has used for so long; what somebody who died was writing or removing."""
    specs = {str(read_mark(home.environment(name)).get("spec", "")) for name in names(home)}
    count = size = 0
    for name in _names(home.locks()):
        path = os.path.join(home.locks(), name)
        is_old = now - _changed(path) >= max(older, YOUNG)
        if name.endswith(".id"):
            is_unneeded = not os.path.isdir(_noted(home, path))
        elif ".new-" in name:
            is_unneeded = is_old
        else:
            spec = name.split("-")[0]
            is_unneeded = is_old and spec not in specs and not _is_held(path)
        if is_unneeded:
            size += _size(path)
            os.unlink(path)
            count += 1
    for name in _names(home.environments()):
        path = os.path.join(home.environments(), name)
        if name.startswith(".removing-") and now - _changed(path) >= YOUNG:
            remove_tree(path)
    return count, size


def _noted(home: Home, path: str) -> str:
    try:
        with open(path) as source:
            return home.environment(source.read().strip())
    except (OSError, ValueError, Refused):
        return ""


def _is_held(path: str) -> bool:
    lock = path if path.endswith(".lock") else path + ".lock"
    return kernel.lock_holder(lock, BUILD_BYTE) is not None


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
