"""The locks of a project: to which exact packages a spec was resolved, for each platform and Python. As long as the
spec is the same, so are they, on every machine."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT = 1
FOLDER = "locks"
_KEYS = ("spec", "platform", "python", "requirements", "conda", "backend")

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
    return isinstance(value, dict) and value.get("format") == FORMAT and all(key in value for key in _KEYS)


def locks_of(state: Path, spec: str) -> tuple[Lock, ...]:
    """Of a spec, by its digest, the last one first. `state` is the project's `.holdfast`."""
    with contextlib.suppress(OSError):
        paths = sorted((state / FOLDER / spec).glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        return tuple(lock for lock in map(read_lock, paths) if lock is not None)
    return ()


def keep_lock(state: Path, lock: Lock, replace: bool) -> bool:
    """For the runs to come. `replace`: also where there is another one. True if it is kept now."""
    spec, platform, python = (str(lock[key]) for key in ("spec", "platform", "python"))
    minor = ".".join(python.split(".")[:2])
    if not all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", part) for part in (spec, platform, minor)):
        return False
    path = state / FOLDER / spec / f"{platform}-{minor}.json"
    if path.exists() and not replace:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(json.dumps(lock, indent=1, sort_keys=True))
    new.replace(path)
    return True
