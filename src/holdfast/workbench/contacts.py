"""What this project knows of each host from the last time: when it was reached, which snapshot it was sent. Knowledge
that saves work and fills a column; a file that is damaged or cannot be written is knowledge that is not there."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from holdfast.project.folder import Project

FORMAT = 1


@dataclass(frozen=True)
class Contact:
    """Times are this machine's. `snapshot`: the last one that the host has whole. `unreachable_since`: the first try
    that failed, None when the last one did not; `reason` is why. `clock_offset`: seconds by which the host's clock is
    ahead of this machine's."""

    snapshot: str | None = None
    reached: float | None = None
    unreachable_since: float | None = None
    reason: str = ""
    clock_offset: float | None = None


def read(project: Project, host: str) -> Contact:
    """`host` is the name of a `Host`."""
    try:
        data: Any = json.loads(_file(project, host).read_bytes())
    except (OSError, ValueError, RecursionError):
        return Contact()
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("host") != host:
        return Contact()
    known = {each.name: data[each.name] for each in fields(Contact) if _fits(each.name, data.get(each.name))}
    return Contact(**known)


def write(project: Project, host: str, contact: Contact) -> None:
    """Whole or not at all; two who write at once: the later one stands."""
    file = _file(project, host)
    new = file.with_name(f".{file.name}.{os.getpid()}.new")
    data = json.dumps({"format": FORMAT, "host": host, **asdict(contact)}, indent=1)
    with contextlib.suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        try:
            new.write_text(data + "\n", encoding="ascii")
            new.replace(file)
        finally:
            with contextlib.suppress(OSError):
                new.unlink()


def reached(project: Project, host: str, now: float) -> None:
    write(project, host, replace(read(project, host), reached=now, unreachable_since=None, reason=""))


def unreachable(project: Project, host: str, now: float, reason: str) -> float:
    """Since when: the first of the tries that failed one after another."""
    known = read(project, host)
    since = now if known.unreachable_since is None else known.unreachable_since
    write(project, host, replace(known, unreachable_since=since, reason=reason))
    return since


def sent(project: Project, host: str, snapshot: str, clock_offset: float, now: float) -> None:
    """The host has this snapshot whole, and was reached."""
    write(project, host, Contact(snapshot, now, None, "", clock_offset))


def _file(project: Project, host: str) -> Path:
    import hashlib  # a name may hold anything, and two must not become one file

    safe = "".join(each if each.isascii() and (each.isalnum() or each in "@-_") else "_" for each in host)
    return project.state_directory / "hosts" / f"{safe[:40]}-{hashlib.sha256(host.encode()).hexdigest()[:8]}.json"


def _fits(name: str, value: object) -> bool:
    if name in ("snapshot", "reason"):
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)
