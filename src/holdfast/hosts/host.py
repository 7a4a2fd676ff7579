"""The seam: a host is whatever can start the far side and hand over its streams."""

from __future__ import annotations

from typing import Protocol

from holdfast.hosts.connection import Connection


class Host(Protocol):
    """A machine that can be reached."""

    @property
    def name(self) -> str:
        """For people: `this machine`, `me@gpu1`."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether its disk is this machine's disk, so that paths here mean the same there."""
        ...

    def connect(self) -> Connection:
        """Returns when what leads there was started: whether it can be reached shows at the first request, which raises
        HostError if not. Raises StorageError when Holdfast's folder cannot be written. Each call makes a new
        connection; the caller closes it."""
        ...
