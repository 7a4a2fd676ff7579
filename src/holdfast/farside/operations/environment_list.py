"""The environments of this host as they are asked about: which there are, what is in them, which may go."""

import json
import os
from typing import Any, Dict, Iterator, List, Tuple

from holdfast.farside.environments.built_environment import COMPLETE, LOCK, is_whole, names, read_mark
from holdfast.farside.environments.locks import is_lock
from holdfast.farside.operations.known_runs import all_runs
from holdfast.farside.run.liveness import is_alive
from holdfast.farside.system import kernel
from holdfast.farside.system.files import walk
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import BUILD_BYTE, JOURNAL, USE_BYTE, Home
from holdfast.farside.system.refusal import Refused

MOST_USERS = 100

Message = Dict[str, Any]


def listed(home: Home, message: Message) -> List[Dict[str, Any]]:
    """The one that was used last first. `size` is all of it, `own` what removing it would free: the other files are
    the package cache's too."""
    rows = [_row(home, name, bool(message.get("sizes", True))) for name in names(home)]
    return sorted(rows, key=lambda row: (-row["used"], row["id"]))


def shown(home: Home, message: Message) -> Dict[str, Any]:
    """All about one: also its packages, its lock, and `users`: project, run, whether it lives; the last one first."""
    name = one(home, str(message["environment"]))
    path, row = home.environment(name), _row(home, name, True)
    mark = read_mark(path)
    try:
        with open(os.path.join(path, LOCK)) as source:
            lock = json.load(source)
    except (OSError, ValueError):
        lock = None
    packages = [str(each) for each in mark.get("packages", [])]
    users = sorted(_users(home, name), key=lambda each: each[3], reverse=True)[:MOST_USERS]
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


def last_use(home: Home, name: str) -> float:
    path = home.environment(name)
    return _time(path + ".lock") or _time(path)


def _users(home: Home, name: str) -> Iterator[Tuple[str, str, bool, float]]:
    """Runs that are here and ran in it; last the time."""
    for project, run in all_runs(home):
        folder = home.run(project, run)
        for event in JournalWriter(os.path.join(folder, JOURNAL)).events():
            if event["e"] == "environment" and event.get("id") == name:
                yield project, run, is_alive(folder), float(event.get("t", 0.0))


def _row(home: Home, name: str, with_sizes: bool) -> Dict[str, Any]:
    path = home.environment(name)
    mark = read_mark(path)
    size = own = 0
    if with_sizes:
        for _, status in walk(path, []):
            size += status.st_size
            own += status.st_size if status.st_nlink == 1 else 0
    return {
        "id": name,
        "state": _state(path),
        "summary": str(mark.get("summary", "")),
        "python": str(mark.get("python", "")),
        "packages": len(mark.get("packages", [])),
        "built": float(mark.get("built", 0.0)),
        "seconds": float(mark.get("seconds", 0.0)),
        "used": last_use(home, name),
        "size": size,
        "own": own,
    }


def _state(path: str) -> str:
    if _is_held(path + ".lock", BUILD_BYTE):
        return "being built"
    if not os.path.exists(os.path.join(path, COMPLETE)):
        return "unfinished"
    if not is_whole(path):
        return "broken"
    return "in use" if _is_held(path + ".lock", USE_BYTE) else "ready"


def _time(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _is_held(path: str, byte: int) -> bool:
    return os.path.exists(path) and kernel.lock_holder(path, byte) is not None
