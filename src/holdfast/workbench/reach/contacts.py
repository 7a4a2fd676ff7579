"""What this project knows of each host from the last time: when it was reached, which snapshot it was sent, since when
it has not answered. It saves work and fills a column; a file that is damaged or cannot be written counts as missing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from holdfast.codec import encode, recover
from holdfast.errors import ElsewhereError, HoldfastError, HostError, HostKeyRefused, LoginNeeded
from holdfast.frozen import dataclass, field, replace
from holdfast.model import ClockTime, Place
from holdfast.project.folder import Project
from holdfast.regular_files import NotJson, read_json
from holdfast.whole_files import write_whole
from holdfast.workbench.reach.context import Context

LOGIN_NEEDED = "login needed"
_FORMAT, _MOST = 1, 1 << 24
CLOCK_OFF = 60.0
"""Seconds by which a host's clock may be off before the user is told."""


@dataclass(frozen=True)
class Contact:
    """Times are this machine's. `snapshot`: the last one that the host has whole. `unreachable_since`: the first try
    that failed, None when the last one did not; `reason` is why. `clock_offset`: seconds by which the host's clock is
    ahead of this machine's. `machine`, `folder` and `node`: who answered when something was sent. `elsewhere`: runs
    that another machine or folder has than the one that answers, each with the time since and the reason."""

    snapshot: str | None = None
    reached: ClockTime | None = None
    unreachable_since: ClockTime | None = None
    reason: str = ""
    clock_offset: ClockTime | None = None
    machine: str = ""
    folder: str = ""
    node: str = ""
    elsewhere: Mapping[str, tuple[ClockTime, str]] = field(default_factory=dict)

    @property
    def place(self) -> Place | None:
        return Place(self.machine, self.folder, self.node) if self.machine and self.folder else None


def read(project: Project, host: str) -> Contact:
    """`host` is the name of a `Host`."""
    try:
        data: Any = read_json(_file(project, host), _MOST, follows_link=False)
    except (OSError, NotJson):
        return Contact()
    if not isinstance(data, dict) or data.get("format") != _FORMAT or data.get("host") != host:
        return Contact()
    return recover(Contact, data)


def write(project: Project, host: str, contact: Contact) -> None:
    """Whole or not at all. If two processes write at once, the later one counts."""
    file = _file(project, host)
    data = json.dumps({"format": _FORMAT, "host": host, **encode(contact)}, indent=1)
    with contextlib.suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        write_whole(file, data.encode("ascii") + b"\n")


def reached(project: Project, host: str, now: float) -> None:
    write(project, host, replace(read(project, host), reached=now, unreachable_since=None, reason=""))


def unreachable(project: Project, host: str, now: float, reason: str) -> float:
    """Since when: the first of the tries that failed one after another."""
    known = read(project, host)
    since = now if known.unreachable_since is None else known.unreachable_since
    write(project, host, replace(known, unreachable_since=since, reason=reason))
    return since


def sent(
    project: Project, host: str, snapshot: str, clock_offset: float, now: float, place: Place | None = None
) -> None:
    """The host has this snapshot whole, and was reached; `place` is who answered."""
    where = (place.machine, place.folder, place.node) if place is not None else ("", "", "")
    elsewhere = read(project, host).elsewhere
    write(project, host, Contact(snapshot, now, None, "", clock_offset, *where, elsewhere))


def found(project: Project, host: str, elsewhere: Mapping[str, str], others: Iterable[str], now: float) -> float:
    """What a look at the host's runs found: those that are elsewhere, each with the reason, and the `others`, which are
    there. Since when the first of them is."""
    known = read(project, host)
    asked = {*elsewhere, *others}
    kept = {run: about for run, about in known.elsewhere.items() if run not in asked}
    since = {run: known.elsewhere[run][0] if run in known.elsewhere else now for run in elsewhere}
    runs = {**kept, **{run: (since[run], reason) for run, reason in elsewhere.items()}}
    if runs != known.elsewhere:
        write(project, host, replace(known, elsewhere=runs))
    return min(since.values(), default=now)


@dataclass(frozen=True)
class Silence:
    """Since when a host has not been reached, and why."""

    since: float
    reason: str

    @property
    def needs_login(self) -> bool:
        return self.reason == LOGIN_NEEDED


def silences(project: Project, run_ids: Iterable[str], context: Context) -> dict[str, Silence]:
    """Of these runs those whose host could not be reached when it was last asked, or was another one."""
    from holdfast.workbench.reach.run_hosts import RunHosts

    found = {}
    hosts = RunHosts(project, context)
    for run_id in run_ids:
        try:
            host = hosts.of_run(run_id)
        except HoldfastError:
            continue  # its target cannot be read: asking it says so
        if host.is_here:
            continue
        contact = read(project, host.name)
        if contact.unreachable_since is not None:
            found[run_id] = Silence(contact.unreachable_since, contact.reason)
        elif run_id in contact.elsewhere:
            found[run_id] = Silence(*contact.elsewhere[run_id])
    return found


def short_reason(error: HostError, host: str) -> str:
    """A few words, for brackets: `Connection refused` of `me@gpu1 cannot be reached: ssh: …: Connection refused`."""
    match error:
        case LoginNeeded():
            return LOGIN_NEEDED
        case HostKeyRefused():
            return "host key refused"
        case ElsewhereError():
            return error.reason
    return error.message.rpartition(": ")[2].strip().removeprefix(f"{host} ").rstrip(".") or "it said nothing"


def _file(project: Project, host: str) -> Path:
    import hashlib  # a name may hold anything, and two must not become one file

    safe = "".join(each if each.isascii() and (each.isalnum() or each in "@-_") else "_" for each in host)
    return project.state_directory / "hosts" / f"{safe[:40]}-{hashlib.sha256(host.encode()).hexdigest()[:8]}.json"
