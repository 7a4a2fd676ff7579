"""The environments that a host has: which, how large, since when unused; and taking them away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.environments.locks import Lock, is_lock
from holdfast.errors import FarSideError, UnknownName, UsageError
from holdfast.frozen import dataclass
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host
from holdfast.project.compute import BUILTIN_LOCAL, compute_names
from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.records.runs import Products
from holdfast.workbench.replies import number, rows, seconds, text, truth, understood
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import host_of

LENGTH, SHORT = 16, 8
"""Characters of an id, and how many of them are shown to people: the beginning is enough for every command."""


@dataclass(frozen=True)
class Listed:
    """One environment. `size` is all of it, `own` what removing it frees; `used` and `built` are the host's times."""

    id: str
    state: str
    """`ready`, `in use`, `being built`, `unfinished` or `broken`: its Python is gone."""
    summary: str
    python: str
    packages: int
    size: int
    own: int
    used: float
    built: float
    seconds: float


@dataclass(frozen=True)
class User:
    """A run on that host that ran in it."""

    project_id: str
    run_id: str
    is_alive: bool


@dataclass(frozen=True)
class Shown:
    """All about one. `lock` is None where it was made by hand or is damaged."""

    listed: Listed
    path: str
    packages: tuple[str, ...]
    lock: Lock | None
    users: tuple[User, ...]


def short(name: str) -> str:
    """An id as it is shown to people; what has a name of its own is called by it."""
    return name[:SHORT] if len(name) == LENGTH and not set(name) - set("0123456789abcdef") else name


def host_of_target(project: Project, target: str | None, around: Surroundings) -> Host:
    """None: this machine. Raises UnknownName, and ConfigurationError for a file with problems."""
    if target is None:
        return host_of(BUILTIN_LOCAL, around)
    valid = compute_names(project.root)
    if target not in valid:
        raise UnknownName("compute target", target, valid)
    return Products(project, around).of_target(target)[1].host


def list_environments(host: Host) -> list[Listed]:
    """The one that was used last first."""
    with host.connect() as connection:
        return _listed(connection, sizes=True)


def show_environment(host: Host, name: str) -> Shown:
    """`name` is an id or the beginning of one."""
    with host.connect() as connection:
        found = _one(_listed(connection, sizes=False), name)
        answer = connection.request("environment-show", {"environment": found.id})
    with understood("environment-show"):
        return Shown(
            _row(answer),
            text(answer["path"]),
            tuple(text(each) for each in rows(answer["packages"])),
            _lock(answer["lock"]),
            tuple(User(text(project), text(run), truth(alive)) for project, run, alive in rows(answer["users"])),
        )


def find_environments(host: Host, names: Sequence[str]) -> list[Listed]:
    """Those that the names mean, each once; without names all. Raises UnknownName and UsageError."""
    found = list_environments(host)
    return list(dict.fromkeys(_one(found, name) for name in names)) if names else found


def require_environment(host: Host, name: str) -> None:
    """Raises UnknownName and UsageError where the name does not mean one."""
    with host.connect() as connection:
        _one(_listed(connection, sizes=False), name)


def remove_environments(host: Host, names: Sequence[str]) -> Iterator[events.Removed]:
    """By their whole ids. One that a run holds is kept, and that is said."""
    with host.connect() as connection:
        for name in names:
            try:
                answer = connection.request("remove", {"environment": name})
            except FarSideError as error:
                if error.kind != "living":
                    raise
                yield events.Removed(f"environment {name}", 0, error.message)
                continue
            with understood("remove"):
                yield events.Removed(f"environment {name}", number(answer["removed"]))


def _one(found: Sequence[Listed], name: str) -> Listed:
    same = [each for each in found if each.id == name] or [each for each in found if name and each.id.startswith(name)]
    if len(same) == 1:
        return same[0]
    if same:
        shown = ", ".join(each.id for each in same)
        raise UsageError(f"`{name}` could be any of {len(same)} environments.", f"Give more of the id: {shown}")
    raise UnknownName("environment", name, (each.id for each in found), "See `holdfast environment list`.")


def _listed(connection: Connection, sizes: bool) -> list[Listed]:
    answer = connection.request("environment-list", {"sizes": sizes})
    with understood("environment-list"):
        return [_row(each) for each in rows(answer)]


def _row(row: Mapping[str, Any]) -> Listed:
    return Listed(
        id=text(row["id"]),
        state=_state(row),
        summary=text(row["summary"]),
        python=text(row["python"]),
        packages=number(row["count"]),
        size=number(row["size"]),
        own=number(row["own"]),
        used=seconds(row["used"]),
        built=seconds(row["built"]),
        seconds=seconds(row["seconds"]),
    )


def _lock(value: Any) -> Lock | None:
    if value is not None and not is_lock(value):
        raise ValueError("what should be a lock is none")
    found: Lock | None = value
    return found


def _state(row: Mapping[str, Any]) -> str:
    if truth(row["in_build"]):
        return "being built"
    if not truth(row["complete"]):
        return "unfinished"
    if not truth(row["works"]):
        return "broken"
    return "in use" if truth(row["in_use"]) else "ready"
