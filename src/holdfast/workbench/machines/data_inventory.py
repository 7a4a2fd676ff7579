"""The data that a machine keeps for runs: which, how large, since when unused; and taking it away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import FarSideError, UnknownName, UsageError
from holdfast.hosts.client import Client
from holdfast.hosts.host import Host
from holdfast.hosts.replies import KeptData
from holdfast.workbench.reach import events


def list_data(host: Host) -> list[KeptData]:
    """The one that was used last first."""
    with host.connect() as connection:
        return list(Client(connection).data_list())


def find_data(host: Host, names: Sequence[str]) -> list[KeptData]:
    """Those that the names mean, each once; without names all. Raises UnknownName and UsageError."""
    found = list_data(host)
    chosen = {each.digest: each for name in names for each in [_one(found, name)]}
    return list(chosen.values()) if names else found


def remove_data(host: Host, data: Sequence[KeptData]) -> Iterator[events.Removed]:
    """What a run reads is kept, and that is said."""
    with host.connect() as connection:
        for each in data:
            try:
                removed = Client(connection).data_remove(each.digest).wait().removed
            except FarSideError as error:
                if error.kind != "living":
                    raise
                yield events.Removed(called(each), 0, error.message)
            else:
                yield events.Removed(called(each), removed)


def called(data: KeptData) -> str:
    """For people: by its first name."""
    return f"{next(iter(data.names), 'data')} ({data.digest[:12]})"


def _one(found: Sequence[KeptData], name: str) -> KeptData:
    same = [each for each in found if name in each.names]
    same = same or [each for each in found if name and each.digest.startswith(name)]
    if len(same) == 1:
        return same[0]
    if same:
        shown = ", ".join(each.digest[:12] for each in same)
        raise UsageError(f"`{name}` could be any of {len(same)} data folders.", f"Name it by its digest: {shown}")
    raise UnknownName("data folder", name, [each for one in found for each in one.names], "See `holdfast data list`.")
