"""The supervisor as a detached process of the host, started by the far side itself."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.hosts.connection import Connection, encode_secrets
from holdfast.model import Plan


class Direct:
    """Engine of every host that has no scheduler of its own."""

    def start(self, connection: Connection, plan: Plan, secrets: Mapping[str, str]) -> None:
        """Returns when a living guardian owns the run. A repeat with the same plan changes nothing. Raises
        StorageError, or FarSideError `exists` when another run has this id there."""
        connection.request("start", {"plan": plan.as_json()}, encode_secrets(secrets))

    def cancel(self, connection: Connection, project_id: str, run_id: str, grace: float | None) -> bool:
        """Ask the run to end; returns at once. False when it had ended already, which is success too."""
        answer = connection.request("cancel", {"project": project_id, "run": run_id, "grace": grace})
        return bool(answer["state"] == "asked")
