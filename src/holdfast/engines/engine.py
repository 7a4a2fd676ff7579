"""The seam: who starts the supervisor of a run, and how it is asked to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from holdfast.hosts.connection import Connection
from holdfast.model import Plan


class Engine(Protocol):
    def start(self, connection: Connection, plan: Plan, secrets: Mapping[str, str]) -> None:
        """Returns when the run is owned by something that outlives this connection. A repeat changes nothing."""
        ...

    def cancel(self, connection: Connection, project_id: str, run_id: str, grace: float | None) -> bool:
        """Ask the run to end; returns at once. False when it had ended already, which is success too."""
        ...
