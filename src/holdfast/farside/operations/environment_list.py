"""The environments of this host: which there are, what is in them, and making room: by age, up to a limit, and what
nothing refers to any more. Never what a run or a shell holds."""

import os
import time
from typing import Any, Dict, Iterator, List, Set, Tuple

from holdfast.farside.environments.built_environment import COMPLETE, LOCK, is_whole, names, read_mark
from holdfast.farside.environments.locks import is_lock
from holdfast.farside.environments.uv import alone
from holdfast.farside.operations.known_runs import all_runs
from holdfast.farside.operations.storage import remove
from holdfast.farside.operations.sweep import HALF_REMOVED, NOTES, UNFINISHED, Moment, Removed, buckets
from holdfast.farside.run.liveness import is_alive
from holdfast.farside.system import foreign, lost_locks
from holdfast.farside.system.files import names_in, read_record, remove_tree, walk
from holdfast.farside.system.journal import events_there
from holdfast.farside.system.layout import BUILD_BYTE, JOURNAL, USE_BYTE, Home
from holdfast.farside.system.lost_locks import LostLocks
from holdfast.farside.system.refusal import Refused

_MOST_USERS = 100

Message = Dict[str, Any]


def listed(home: Home, message: Message) -> List[Dict[str, Any]]:
    """The one that was used last first. `size` is all of it, `own` what removing it would free: the other files are
    the package cache's too."""
    lost = LostLocks()
    rows = [_row(home, name, bool(message.get("sizes", True)), lost) for name in names(home)]
    return sorted(rows, key=lambda row: (-row["used"], row["id"]))


def shown(home: Home, message: Message) -> Dict[str, Any]:
    """All about one: also its packages, its lock, and `users`: project, run, whether it lives; the last one first."""
    name = one(home, str(message["environment"]))
    path, row = home.environment(name), _row(home, name, True, LostLocks())
    mark = read_mark(path)
    lock = read_record(os.path.join(path, LOCK))
    packages = [str(each) for each in foreign.listing(mark.get("packages"))]
    users = sorted(_users(home, name), key=lambda each: each[3], reverse=True)[:_MOST_USERS]
    rows = [list(each[:3]) for each in users]
    return {"listed": row, "path": path, "packages": packages, "lock": lock if is_lock(lock) else None, "users": rows}


def one(home: Home, text: str) -> str:
    """By its name or the beginning of it."""
    known = names(home)
    found = [text] if text in known else [name for name in known if text and name.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused("ambiguous", "`%s` is the beginning of several environments: %s." % (text, ", ".join(found)))
    hint = "There are: %s" % ", ".join(known) if known else "There is none on this machine."
    raise Refused("not-found", "There is no environment `%s` on this machine." % text, hint)


def _last_use(home: Home, name: str) -> float:
    path = home.environment(name)
    return _time(path + ".lock") or _time(path)


def _users(home: Home, name: str) -> Iterator[Tuple[str, str, bool, float]]:
    """Runs that are here and ran in it; last the time."""
    for project, run in all_runs(home):
        folder = home.run(project, run)
        for event in events_there(os.path.join(folder, JOURNAL)):
            if event["e"] == "environment" and event.get("id") == name:
                yield project, run, is_alive(folder), foreign.number(event.get("t"))


def _row(home: Home, name: str, with_sizes: bool, lost: LostLocks) -> Dict[str, Any]:
    path = home.environment(name)
    mark = read_mark(path)
    size = own = 0
    if with_sizes:
        for _, status in walk(path, []):
            size += status.st_size
            own += status.st_size if status.st_nlink == 1 else 0
    return {
        "id": name,
        "state": _state(path, lost),
        "summary": str(mark.get("summary", "")),
        "python": str(mark.get("python", "")),
        "packages": len(mark.get("packages", [])),
        "built": float(mark.get("built", 0.0)),
        "seconds": float(mark.get("seconds", 0.0)),
        "used": _last_use(home, name),
        "size": size,
        "own": own,
    }


def _state(path: str, lost: LostLocks) -> str:
    if lost_locks.holder(path + ".lock", BUILD_BYTE, lost) is not None:
        return "being built"
    if not os.path.exists(os.path.join(path, COMPLETE)):
        return "unfinished"
    if not is_whole(path):
        return "broken"
    return "in use" if lost_locks.holder(path + ".lock", USE_BYTE, lost) is not None else "ready"


def _time(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


_Inode = Tuple[int, int]


def trimmed(home: Home, message: Message) -> Dict[str, Any]:
    """Remove environments that were not used for `older` seconds; then, until environments and cache are below `keep`
    bytes, packages of the cache that no environment has, and environments, those used longest ago first. Last, notes
    and locks that lead to nothing. Answers with `[what, bytes]`, `[what, why it was kept]`, and the bytes left."""
    older, keep = message.get("older"), message.get("keep")
    removed: List[List[Any]] = []
    kept: List[List[str]] = []
    now = time.time()
    if older is not None:
        for name in [each for each in names(home) if _last_use(home, each) < now - float(older)]:
            _remove(home, name, removed, kept)
    left = _Limit(home, int(keep), removed, kept).enforce() if keep is not None else None
    moment = Moment(now, float(older or 0.0))
    unfinished = UNFINISHED.remove(home, moment)
    if unfinished:
        removed.append(["what installers left unfinished", _bytes(unfinished)])
    notes = NOTES.remove(home, moment)
    if notes:
        what = "1 note about an environment" if len(notes) == 1 else "%d notes about environments" % len(notes)
        removed.append([what, _bytes(notes)])
    HALF_REMOVED.remove(home, moment)
    return {"removed": removed, "kept": kept, "left": left}


def _bytes(removed: Removed) -> int:
    return sum(size for _, size in removed)


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
        self._sizes: Dict[_Inode, int] = {}
        self._owners: Dict[_Inode, int] = {}
        self._files: Dict[str, Set[_Inode]] = {}
        self._total = 0

    def enforce(self) -> int:
        """Returns the bytes that are left."""
        self._look()
        if self._total > self._keep:
            self._drop_unused()
        for name in sorted(names(self._home), key=lambda name: _last_use(self._home, name)):
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
            for path in sorted(_cached(self._home), key=_time) if is_alone else []:
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
    for folder in buckets(home):
        paths = [os.path.join(folder, name) for name in names_in(folder) if not name.startswith(".")]
        yield from (path for path in paths if os.path.isdir(path) and not os.path.islink(path))
