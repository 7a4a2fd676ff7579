"""The seam: who starts the supervisor of a run, and how it is asked to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from holdfast.hosts.connection import Connection
from holdfast.model import Place
from holdfast.plan import Plan


class Order(NamedTuple):
    """What is to be started, and the run's records as JSON, which the host keeps for whoever did not submit it.
    `place`: the only one that may start it, None for whichever answers."""

    plan: Plan
    submission: Mapping[str, Any]
    configuration: Mapping[str, Any]
    place: Place | None = None


class Engine(Protocol):
    def send_start(self, connection: Connection, order: Order, secrets: Mapping[str, str]) -> int:
        """Ask for the start without waiting, so that it travels together with other requests. A repeat changes
        nothing. Raises HostError when the link is gone. Returns the number for `await_start`."""
        ...

    def await_start(self, connection: Connection, number: int) -> None:
        """Returns when the run is owned by something that outlives this connection. Raises StorageError; FarSideError
        `incomplete` when the snapshot is not whole over there, `exists` when another run has this id, `elsewhere` when
        this is not the place; HostError when the link is gone: then the run may have started."""
        ...

    def cancel(self, connection: Connection, project_id: str, run_id: str, grace: float | None) -> bool:
        """Ask the run to end; returns at once. False when it had ended already, which is success too."""
        ...
