"""The seam: a host is whatever can start the far side and hand over its streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass
from holdfast.hosts.connection import Connection
from holdfast.hosts.far_end import Said


@dataclass(frozen=True)
class Carrier:
    """How a port of a host comes to this machine: the command that carries it to a port here for as long as it lives,
    its variables, and what its end means."""

    argv: Callable[[int], list[str]]
    environment: Mapping[str, str]
    explain: Callable[[Said], HoldfastError]


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
        HostError if not. Without `may_ask` the user is never asked for a password: LoginNeeded says that one is needed.
        Raises StorageError when Holdfast's folder cannot be written. Each call makes a new connection; the caller
        closes it."""
        ...

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        """The command that runs `words` on the host with the terminal of the caller. Starts nothing."""
        ...

    def carrier(self, port: int) -> Carrier | None:
        """Of the port that programs on the host find at 127.0.0.1. None: that is a port of this machine. Starts
        nothing."""
        ...

    def alone(self) -> Host:
        """The same host, by connections that are not shared: a login over there ends with each."""
        ...
