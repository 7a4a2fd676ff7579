"""The supervisor as a detached process of the host, started by the far side itself."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.engines.engine import Order
from holdfast.hosts.connection import Connection, encode_secrets


class Direct:
    """Engine of every host that has no scheduler of its own."""

    def send_start(self, connection: Connection, order: Order, secrets: Mapping[str, str]) -> int:
        records = {"submission": order.submission, "configuration": order.configuration}
        place = {} if order.place is None else {"place": [order.place.machine, order.place.folder]}
        return connection.send("start", {"plan": order.plan.as_json(), **records, **place}, encode_secrets(secrets))

    def await_start(self, connection: Connection, number: int) -> None:
        """Returns when a living guardian owns the run."""
        connection.answer(number)

    def cancel(self, connection: Connection, project_id: str, run_id: str, grace: float | None) -> bool:
        """Ask the run to end; returns at once. False when it had ended already, which is success too."""
        answer = connection.request("cancel", {"project": project_id, "run": run_id, "grace": grace})
        return bool(answer["state"] == "asked")
