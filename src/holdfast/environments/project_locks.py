"""The locks of a project: to which exact packages a spec was resolved, for each platform and Python. As long as the
spec is the same, so are they, on every machine."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.farside.environments import locks as far
from holdfast.whole_files import write_whole

FORMAT = far.FORMAT
FOLDER = "locks"

Lock = Mapping[str, Any]
"""As the far side wrote it. It is handed back as it is, and only its head is looked at here."""


def read_lock(path: Path) -> Lock | None:
    """None where there is none, or what is there is none that this version knows."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if is_lock(found) else None


def is_lock(value: Any) -> bool:
    """Whether it has all that a lock has, and says nothing but packages."""
    return far.is_lock(value)


def locks_of(state: Path, spec: str) -> tuple[Lock, ...]:
    """Of a spec, by its digest, the last one first. `state` is the project's `.holdfast`."""
    with contextlib.suppress(OSError):
        paths = sorted((state / FOLDER / spec).glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        return tuple(lock for lock in map(read_lock, paths) if lock is not None)
    return ()


def keep_lock(state: Path, lock: Lock, spec: str, replace: bool) -> bool:
    """For the runs to come. `spec` is the digest of what was asked for: a lock for anything else is not kept.
    `replace`: also where there is another one. True if it is kept now."""
    if not is_lock(lock) or lock["spec"] != spec or not re.fullmatch(_NAME, spec):
        return False
    path = state / FOLDER / spec / f"{_name(lock)}.json"
    if path.exists() and not replace:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(lock, indent=1, sort_keys=True).encode())
    return True


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def _name(lock: Lock) -> str:
    """What it was made for: machines with and without GPUs, or with old drivers, may need other builds."""
    driver = f"-cuda{lock['cuda']}" if lock.get("cuda") else "-old-driver" if lock["backend"] else ""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{lock['platform']}-{far.minor(lock['python'])}{driver}")
