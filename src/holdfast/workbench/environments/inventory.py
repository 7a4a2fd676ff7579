"""The environments that a host has: which, how large, since when unused; and taking them away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import FarSideError, UnknownName, UsageError
from holdfast.hosts.client import Client
from holdfast.hosts.host import Host
from holdfast.hosts.replies import ListedEnvironment, Shown
from holdfast.workbench.reach import events


def list_environments(host: Host) -> list[ListedEnvironment]:
    """The one that was used last first."""
    with host.connect() as connection:
        return list(Client(connection).environment_list(sizes=True))


def show_environment(host: Host, name: str) -> Shown:
    """`name` is an id or the beginning of one."""
    with host.connect() as connection:
        far = Client(connection)
        return far.environment_show(_one(far.environment_list(sizes=False), name).id)


def find_environments(host: Host, names: Sequence[str]) -> list[ListedEnvironment]:
    """Those that the names mean, each once; without names all. Raises UnknownName and UsageError."""
    found = list_environments(host)
    return list(dict.fromkeys(_one(found, name) for name in names)) if names else found


def require_environment(host: Host, name: str) -> None:
    """Raises UnknownName and UsageError where the name does not mean one."""
    with host.connect() as connection:
        _one(Client(connection).environment_list(sizes=False), name)


def remove_environments(host: Host, names: Sequence[str]) -> Iterator[events.Removed]:
    """By their whole ids. One that a run holds is kept, and that is said."""
    with host.connect() as connection:
        for name in names:
            try:
                removed = Client(connection).remove({"environment": name}).wait().removed
            except FarSideError as error:
                if error.kind != "living":
                    raise
                yield events.Removed(f"environment {name}", 0, error.message)
                continue
            yield events.Removed(f"environment {name}", removed)


def _one(found: Sequence[ListedEnvironment], name: str) -> ListedEnvironment:
    same = [each for each in found if each.id == name] or [each for each in found if name and each.id.startswith(name)]
    if len(same) == 1:
        return same[0]
    if same:
        shown = ", ".join(each.id for each in same)
        raise UsageError(f"`{name}` could be any of {len(same)} environments.", f"Give more of the id: {shown}")
    raise UnknownName("environment", name, (each.id for each in found), "See `holdfast environment list`.")
