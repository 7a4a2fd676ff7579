"""Removing from this host what no run needs any more: contents of snapshots, old versions of the far side, what was
left half-done, the installers' cache."""

import os
import time
from typing import Any, Dict, Iterable, Iterator, List, Set, Tuple

from holdfast.farside.account.ownership import adopt, is_ours
from holdfast.farside.environments.alone import alone
from holdfast.farside.layout import JOURNAL, SHIPPED, Home, object_path
from holdfast.farside.refusal import Refused
from holdfast.farside.run.files import remove_tree, walk
from holdfast.farside.run.journal import Journal
from holdfast.farside.run.subscription import adjudicate, is_alive
from holdfast.farside.store.known_runs import all_runs, names, read_json
from holdfast.farside.store.objects import incoming
from holdfast.farside.store.occupying import Alone

YOUNG = 3600.0
"""Seconds for which nothing is taken for unneeded: its run may be about to start."""


def sweep(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """Remove contents that no run here needs, versions of the far side that no run uses and what somebody left
    half-done; with `cache` also what the installers keep. Nothing younger than an hour goes. Answers `[what, number,
    bytes]` for each kind that had some, and why the rest was kept."""
    removed: List[List[Any]] = []
    kept: List[List[str]] = []
    now = time.time()
    if not is_ours(home):
        return {"removed": [], "kept": [["all else", "`%s` holds what is not Holdfast's" % home.path]]}
    adopt(home)  # before old versions go, by which a folder that has no mark is known
    try:
        count, size = _sweep_objects(home, now)
        if count:
            removed.append(["objects", count, size])
    except Refused as refusal:
        kept.append(["files that no run needs", refusal.message])
    count, size = _sweep_leftovers(home, now)
    if count:
        removed.append(["leftovers", count, size])
    removed.extend(["container " + name, 1, 0] for name in _sweep_containers(home))
    for name, bytes_ in _sweep_versions(home, now):
        removed.append(["farside " + name, 1, bytes_])
    if message.get("cache") and os.path.isdir(home.cache()):
        with alone(home) as may_remove:
            if may_remove:
                size = _size(home.cache())
                remove_tree(home.cache())
                removed.append(["cache", 1, size])
            else:
                kept.append(["cache", "an environment is being built"])
    return {"removed": removed, "kept": kept}


def _sweep_containers(home: Home) -> List[str]:
    """Of runs that are over, where any ever had one; loaded then."""
    if not home.had_containers():
        return []
    from holdfast.farside.containers import leftovers

    return leftovers.remove(home)


def _sweep_objects(home: Home, now: float) -> Tuple[int, int]:
    old = [(digest, path) for digest, path in _stored(home) if _is_old(path, now)]
    if not old:
        return 0, 0
    known = set(_snapshots(home))
    needed = _needed(home, known, now)  # reading every manifest takes a while; whoever sends need not wait for it
    unneeded = [(digest, path) for digest, path in old if digest not in needed]
    count = size = 0
    with Alone(home):
        needed = _needed(home, set(_snapshots(home)) - known, time.time())  # what was announced meanwhile
        for digest, path in unneeded:
            if digest not in needed and _is_old(path, now):
                status = os.lstat(path)
                size += status.st_size if status.st_nlink == 1 else 0
                os.unlink(path)
                count += 1
    return count, size


def _is_old(path: str, now: float) -> bool:
    try:
        return now - os.lstat(path).st_mtime >= YOUNG
    except OSError:
        return False


def _stored(home: Home) -> Iterator[Tuple[str, str]]:
    """Name and path of each object; parts of objects that were never finished have their whole file's name as name."""
    for folder in names(home.objects()):
        for name in names(os.path.join(home.objects(), folder)):
            yield folder + name, os.path.join(home.objects(), folder, name)


def _needed(home: Home, snapshots: Set[str], now: float) -> Set[str]:
    """What these snapshots hold, and young ones: their runs may be about to start."""
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
    """Of all runs here, and of those that are being made; manifests of packages too, as long as a run may need them to
    build its environment."""
    for project in names(home.runs()):
        folder = os.path.join(home.runs(), project)
        for run in os.listdir(folder):
            if not run.startswith(".removing-"):
                plan = read_json(os.path.join(folder, run, "plan.json"))
                if plan is not None and isinstance(plan.get("snapshot"), str):
                    yield plan["snapshot"]
                packages = ((plan or {}).get("environment") or {}).get("packages")
                if isinstance(packages, str) and not _has_ended(os.path.join(folder, run)):
                    yield packages


def _has_ended(run: str) -> bool:
    return Journal(os.path.join(run, JOURNAL)).ended() is not None and not is_alive(run)


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


def _sweep_leftovers(home: Home, now: float) -> Tuple[int, int]:
    """What a process that died was making or removing, a shell that nobody entered, parts of files that nobody goes on
    with."""
    count = size = 0
    for path in _leftovers(home):
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        if not _is_old(path, now) or (is_folder and is_alive(path)):
            continue
        size += _size(path) if is_folder else os.lstat(path).st_size
        if is_folder:
            remove_tree(path)
        else:
            os.unlink(path)
        count += 1
    return count, size


def _leftovers(home: Home) -> Iterator[str]:
    for folder in (os.path.join(home.path, "shells"), os.path.join(home.path, "proofs"), incoming(home)):
        for name in _all_names(folder):
            yield os.path.join(folder, name)
    for name in _all_names(home.path):
        if name.startswith(Home.PASSING):
            yield os.path.join(home.path, name)
    projects = [os.path.join(home.runs(), project) for project in names(home.runs())]
    for folder in [home.versions()] + projects:
        for name in _all_names(folder):
            if name.startswith((".new-", ".removing-")):
                yield os.path.join(folder, name)


def _all_names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _sweep_versions(home: Home, now: float) -> Iterator[Tuple[str, int]]:
    folder = home.versions()
    old = [name for name in names(folder) if now - os.lstat(os.path.join(folder, name)).st_mtime > YOUNG]
    in_use = _words_of_users(home) if old else ""
    for name in old:
        if name not in in_use:
            path = os.path.join(folder, name)
            size = _size(path)
            remove_tree(path)
            yield name, size


def _words_of_users(home: Home) -> str:
    """A text that names every version in use: this process's own, those of runs that have not ended, and those that
    stand in the command of any process, as agents and guardians were started with it."""
    words = [SHIPPED]
    for project, run in all_runs(home):
        folder = home.run(project, run)
        adjudicate(folder)
        journal = Journal(os.path.join(folder, JOURNAL))
        if journal.ended() is None or is_alive(folder):
            words += [str(event.get("farside")) for event in journal.events() if event["e"] == "created"]
    for process in os.listdir("/proc"):
        if process.isdigit():
            try:
                with open("/proc/%s/cmdline" % process, "rb") as source:
                    words.append(os.fsdecode(source.read()))
            except OSError:
                continue
    return "\0".join(words)


def _size(path: str) -> int:
    """Bytes that removing it frees: a hard link into an environment frees nothing."""
    return sum(status.st_size for _, status in walk(path, []) if status.st_nlink == 1)
