"""What is known of hosts that could not be asked, for those who show their unfinished runs."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context

LOGIN_NEEDED = "login needed"


@dataclass(frozen=True)
class Silence:
    """Since when a host has not been reached, and why."""

    since: float
    reason: str

    @property
    def needs_login(self) -> bool:
        return self.reason == LOGIN_NEEDED


def silences(project: Project, run_ids: Iterable[str], context: Context) -> dict[str, Silence]:
    """Of these runs those whose host could not be reached when it was last asked, or was another one."""
    from holdfast.workbench.reach import contacts
    from holdfast.workbench.reach.run_hosts import RunHosts

    found = {}
    hosts = RunHosts(project, context)
    for run_id in run_ids:
        try:
            host = hosts.of_run(run_id)
        except HoldfastError:
            continue  # its target cannot be read: asking it says so
        contact = contacts.read(project, host.name)
        if host.is_here:
            continue
        if contact.unreachable_since is not None:
            found[run_id] = Silence(contact.unreachable_since, contact.reason)
        elif run_id in contact.elsewhere:
            found[run_id] = Silence(*contact.elsewhere[run_id])
    return found


def short_reason(message: str, host: str) -> str:
    """The end of a sentence, for brackets: `me@gpu1 cannot be reached: ssh: …: Connection refused` is `Connection
    refused`."""
    return message.rpartition(": ")[2].strip().removeprefix(f"{host} ").rstrip(".") or "it said nothing"
