"""A look at this machine: what there is, and what may keep runs from working."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import FarSideError
from holdfast.hosts.client import FACTS_TIMEOUT, Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host, Local
from holdfast.hosts.machine_report import DockerReport, MachineFacts
from holdfast.workbench.machines.docker_check import engine_findings
from holdfast.workbench.machines.machine_findings import MachineFinding, findings
from holdfast.workbench.machines.usability import MachineLook
from holdfast.workbench.reach.context import Context


class MachineCheck(NamedTuple):
    """`engine` None: there is no Docker, or it cannot be used."""

    facts: MachineFacts
    findings: tuple[MachineFinding, ...]
    engine: DockerReport | None


def check_this_machine(context: Context, timeout: float = FACTS_TIMEOUT) -> MachineCheck:
    """Raises StorageError when Holdfast's folder cannot be written, NotAvailable where this is not Linux."""
    with Local(context.home, context.environment).connect() as connection:
        facts = Client(connection).facts(timeout)
        found = findings(facts, context.now())
        engine, about = _docker(connection) if facts.docker.version else (None, [])
    return MachineCheck(facts, (*found, *about), engine)


def check_host(host: Host, context: Context, timeout: float = FACTS_TIMEOUT, in_container: bool = False) -> MachineLook:
    """The same look at any machine, as runs without containers need it unless `in_container`. Raises what `connect` and
    a request raise."""
    with host.connect() as connection:
        facts = Client(connection).facts(timeout)
    return MachineLook(facts, tuple(findings(facts, context.now(), in_container=in_container)))


def _docker(connection: Connection) -> tuple[DockerReport | None, list[MachineFinding]]:
    """Runs without containers need none of it, so nothing of it stops runs."""
    try:
        engine = Client(connection).docker()
    except FarSideError as error:
        return None, [MachineFinding(error.message, f"{error.hint} Only targets with containers need it.".strip())]
    return engine, [each._replace(stops_runs=False) for each in engine_findings(engine)]
