"""What Holdfast keeps on a host, kind by kind: where it lies, what of it nothing needs any more, and removing that."""

import contextlib
import os
import time
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from holdfast.farside.engines.engine import DIRECT
from holdfast.farside.engines.owners import owner_of
from holdfast.farside.environments.built_environment import names as environment_names
from holdfast.farside.environments.built_environment import read_mark
from holdfast.farside.environments.uv import alone, caches
from holdfast.farside.operations.account import is_ours
from holdfast.farside.operations.home_lock import Alone
from holdfast.farside.operations.known_runs import all_runs, names
from holdfast.farside.operations.objects import incoming
from holdfast.farside.run.liveness import adjudicate, has_ended, is_alive
from holdfast.farside.system import foreign, lost_locks
from holdfast.farside.system.files import REMOVING, names_in, read_json, read_record, remove_path, size_freed
from holdfast.farside.system.journal import events_there
from holdfast.farside.system.kept_data import kept as kept_data
from holdfast.farside.system.layout import BUILD_BYTE, JOURNAL, SHIPPED, Home, object_path
from holdfast.farside.system.processes import pids
from holdfast.farside.system.refusal import Refused

_YOUNG = 3600.0
"""Seconds for which nothing is taken for unneeded: its run may be about to start."""
_ARCHIVES, _PACKAGES = "archive-v", "packages"
"""How folders of uv's cache and of conda's begin whose entries are unpacked packages: installers fetch one again that
is not there."""

Paths = Iterable[str]
Removed = List[Tuple[str, int]]
"""Path and bytes that were freed."""


class Moment(NamedTuple):
    """When the sweep began. `older`: what a later run could use again goes only if unused for so many seconds."""

    now: float
    older: float = 0.0


class Kind(NamedTuple):
    """One kind of things to sweep. `look` searches without a lock, which may take long. It returns None if there is
    nothing, or a function that is called under the lock `alone` and returns the paths that are still unneeded.
    `alone` yields False, or raises Refused, while another process uses such things."""

    look: Callable[[Home, Moment], Optional[Callable[[], Paths]]]
    alone: Callable[[Home], ContextManager[Any]]

    def remove(self, home: Home, moment: Moment) -> Optional[Removed]:
        """Returns None, or raises Refused, while another process uses such things."""
        unneeded = self.look(home, moment)
        if unneeded is None:
            return []
        removed: Removed = []
        with self.alone(home) as is_alone:
            if is_alone is False:
                return None
            for path in unneeded():
                removed.append((path, size_freed(path)))
                remove_path(path)
        return removed


def sweep(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """Remove contents that no run here needs, versions of the far side that no run uses and what a process that died
    left half-done; with `cache` also what the installers keep. Nothing younger than an hour goes. Answers `[what,
    number, bytes]` for each kind that had some, and why the rest was kept."""
    kept: List[List[str]] = []
    moment = Moment(time.time())
    if not is_ours(home):
        return {"removed": [], "kept": [["all else", "`%s` holds what is not Holdfast's" % home.path]]}
    removed: List[List[Any]] = []
    try:
        removed += _counted("objects", OBJECTS.remove(home, moment))
    except Refused as refusal:
        kept.append(["files that no run needs", refusal.message])
    removed += _counted("leftovers", LEFTOVERS.remove(home, moment))
    removed += [["container " + name, 1, 0] for name in sweep_containers(home)]
    removed += [["farside " + os.path.basename(path), 1, size] for path, size in VERSIONS.remove(home, moment) or []]
    if message.get("cache"):
        cache = CACHE.remove(home, moment)
        removed += _counted("cache", cache)
        if cache is None:
            kept.append(["cache", "an environment is being built"])
    if kept_data(home):
        kept.append(["data", "later runs may read it; see: holdfast data list"])
    return {"removed": removed, "kept": kept}


def _counted(name: str, removed: Optional[Removed]) -> List[List[Any]]:
    return [[name, len(removed), sum(size for _, size in removed)]] if removed else []


def sweep_containers(home: Home) -> List[str]:
    """Remove containers of runs that are over. If Docker does not answer, they stay until the next sweep."""
    if not home.had_containers():
        return []
    from holdfast.farside.operations import leftover_containers

    return leftover_containers.remove(home)


def _objects(home: Home, moment: Moment) -> Optional[Callable[[], Paths]]:
    """Contents that no run's snapshot has."""
    old = [(digest, path) for digest, path in _stored(home) if _is_old(path, moment.now)]
    if not old:
        return None
    known = set(_snapshots(home))
    needed = _needed(home, known, moment.now)  # reading every manifest takes a while; a sender need not wait for it
    unneeded = [(digest, path) for digest, path in old if digest not in needed]

    def still() -> Paths:
        late = _needed(home, set(_snapshots(home)) - known, time.time())  # what was announced meanwhile
        return [path for digest, path in unneeded if digest not in late and _is_old(path, moment.now)]

    return still


def _stored(home: Home) -> Iterator[Tuple[str, str]]:
    """Digest and path of each object. An unfinished one yields its whole file name, which matches no digest."""
    for folder in names(home.objects()):
        for name in names(os.path.join(home.objects(), folder)):
            yield folder + name, os.path.join(home.objects(), folder, name)


def _needed(home: Home, snapshots: Set[str], now: float) -> Set[str]:
    """Digests of these snapshots and of young ones, whose runs may be about to start, with their contents."""
    found: Set[str] = set()
    for snapshot in snapshots:
        found.add(snapshot)
        found.update(_contents(home, snapshot))
    for digest, path in _stored(home):
        if digest not in found and _is_young_manifest(path, now):
            found.add(digest)
            found.update(_contents(home, digest))
    return found


def _snapshots(home: Home) -> Iterator[str]:
    """Of all runs here, and of those that are being made; what else was sent for a run too, as long as it may need it:
    packages, and files of an earlier one."""
    for project in names(home.runs()):
        folder = os.path.join(home.runs(), project)
        for run in names_in(folder, is_strict=True):
            if not run.startswith(REMOVING):
                plan = read_record(os.path.join(folder, run, "plan.json"))
                if plan is not None and isinstance(plan.get("snapshot"), str):
                    yield plan["snapshot"]
                before = [("environment", "packages"), ("earlier", "sent")]
                needed = [foreign.mapping((plan or {}).get(part)).get(name) for part, name in before]
                if any(needed) and not has_ended(os.path.join(folder, run)):
                    yield from (each for each in needed if isinstance(each, str))


def _contents(home: Home, snapshot: str) -> Iterable[str]:
    try:
        manifest = read_json(object_path(home.objects(), snapshot))
        files = manifest["files"] if manifest is not None else []
        return [row[2] for row in files if row[1] != "l"]
    except (Refused, KeyError, TypeError, IndexError):
        return []


def _is_young_manifest(path: str, now: float) -> bool:
    try:
        if _is_old(path, now):
            return False
        with open(path, "rb") as source:
            return b'"files":[' in source.read(64)
    except OSError:
        return False


def _leftovers(home: Home, moment: Moment) -> Optional[Callable[[], Paths]]:
    """What a process that died was making or removing, a shell that was never entered, parts of files that never came
    whole."""

    def is_unneeded(path: str) -> bool:
        return _is_old(path, moment.now) and (os.path.islink(path) or not os.path.isdir(path) or not is_alive(path))

    return lambda: filter(is_unneeded, _passing(home))


def _passing(home: Home) -> Iterator[str]:
    for folder in (os.path.join(home.path, "shells"), os.path.join(home.path, "proofs"), incoming(home)):
        for name in names_in(folder):
            yield os.path.join(folder, name)
    for name in names_in(home.path):
        if name.startswith(Home.PASSING):
            yield os.path.join(home.path, name)
    projects = [os.path.join(home.runs(), project) for project in names(home.runs())]
    for folder in [home.versions(), home.data()] + projects:
        for name in names_in(folder):
            if name.startswith((".new-", REMOVING)):
                yield os.path.join(folder, name)


def _versions(home: Home, moment: Moment) -> Optional[Callable[[], Paths]]:
    """Of the far side, that no process and no run uses."""
    folder = home.versions()
    old = [name for name in names(folder) if _is_old(os.path.join(folder, name), moment.now)]
    in_use = _words_of_users(home) if old else ""
    return lambda: [os.path.join(folder, name) for name in old if name not in in_use]


def _words_of_users(home: Home) -> str:
    """A text that names every version in use: this process's own, those of runs that have not ended, and those that
    stand in the command of any process, as agents and guardians were started with it."""
    words = [SHIPPED]
    for project, run in all_runs(home):
        folder = home.run(project, run)
        if adjudicate(folder) and owner_of(folder).engine != DIRECT:
            words += names(home.versions())  # its engine may start it yet, with any of them
        elif not has_ended(folder):
            events = events_there(os.path.join(folder, JOURNAL))
            words += [str(event.get("farside")) for event in events if event["e"] == "created"]
    for pid in pids():
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as source:
                words.append(os.fsdecode(source.read()))
        except OSError:
            continue
    return "\0".join(words)


def _cache(home: Home, moment: Moment) -> Optional[Callable[[], Paths]]:
    """All that the installers keep."""
    return (lambda: [home.cache()]) if os.path.isdir(home.cache()) else None


def buckets(home: Home) -> List[str]:
    """Folders of the cache whose entries are unpacked packages."""
    found = []
    for tool, beginning in [(name, _ARCHIVES) for name in caches(home)] + [("conda", _PACKAGES)]:
        folder = os.path.join(home.cache(), tool)
        found += [os.path.join(folder, name) for name in names_in(folder) if name.startswith(beginning)]
    return found


def _unfinished(home: Home, moment: Moment) -> Optional[Callable[[], Paths]]:
    """Folders in which an installer that was killed unpacked something, and locks of packages that are gone."""
    found: List[str] = []
    for folder in [os.path.join(home.cache(), name) for name in caches(home)] + buckets(home):
        paths = {name: os.path.join(folder, name) for name in names_in(folder)}
        left = [path for name, path in paths.items() if name.startswith(".tmp")]
        ends = [path for name, path in paths.items() if name.endswith(".lock") and not name.startswith(".")]
        left += [path for path in ends if not os.path.exists(path[: -len(".lock")])]
        found += [path for path in left if _is_old(path, moment.now)]
    return (lambda: found) if found else None


def _notes(home: Home, moment: Moment) -> Optional[Callable[[], Paths]]:
    """Notes of which environment a lock became, where that is gone; locks of specs that no environment has and that
    were not used for so long; what a process that died was writing."""
    specs = {str(read_mark(home.environment(name)).get("spec", "")) for name in environment_names(home)}
    found = []
    for name in names_in(home.locks()):
        path = os.path.join(home.locks(), name)
        is_old = _is_old(path, moment.now, moment.older)
        if name.endswith(".id"):
            is_unneeded = not os.path.isdir(_noted(home, path))
        elif ".new-" in name:
            is_unneeded = is_old
        else:
            is_unneeded = is_old and name.split("-")[0] not in specs and not _is_held(path)
        if is_unneeded:
            found.append(path)
    return lambda: found


def _noted(home: Home, path: str) -> str:
    try:
        with open(path) as source:
            return home.environment(source.read().strip())
    except (OSError, ValueError, Refused):
        return ""


def _is_held(path: str) -> bool:
    lock = path if path.endswith(".lock") else path + ".lock"
    return lost_locks.holder(lock, BUILD_BYTE) is not None


def _half_removed(home: Home, moment: Moment) -> Optional[Callable[[], Paths]]:
    """Environments whose removal was cut off."""
    names = [name for name in names_in(home.environments()) if name.startswith(REMOVING)]
    paths = [os.path.join(home.environments(), name) for name in names]
    return lambda: [path for path in paths if _is_old(path, moment.now)]


def _is_old(path: str, now: float, older: float = 0.0) -> bool:
    try:
        return now - os.lstat(path).st_mtime >= max(older, _YOUNG)
    except OSError:
        return False


@contextlib.contextmanager
def _anyway(home: Home) -> Iterator[bool]:
    """Nothing that another could be at."""
    yield True


OBJECTS = Kind(_objects, Alone)
LEFTOVERS = Kind(_leftovers, _anyway)
VERSIONS = Kind(_versions, _anyway)
CACHE = Kind(_cache, alone)
UNFINISHED = Kind(_unfinished, alone)
NOTES = Kind(_notes, _anyway)
HALF_REMOVED = Kind(_half_removed, _anyway)
