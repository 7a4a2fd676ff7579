"""The seam: a host is whatever can start the far side and hand over its streams."""

from __future__ import annotations

from collections.abc import Sequence
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

    def connect(self, may_ask: bool = True) -> Connection:
        """Returns when what leads there was started: whether it can be reached shows at the first request, which raises
        HostError if not. Without `may_ask` nobody is ever asked for a password: LoginNeeded says that one is needed.
        Raises StorageError when Holdfast's folder cannot be written. Each call makes a new connection; the caller
        closes it."""
        ...

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        """The command that runs `words` on the host with the terminal of whoever starts it. Starts nothing."""
        ...
