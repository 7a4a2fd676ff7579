"""A look at this machine: what there is, and what may keep runs from working."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import FarSideError
from holdfast.hosts.connection import Connection
from holdfast.hosts.facts import TIMEOUT, Facts, read_facts
from holdfast.hosts.host import Host
from holdfast.hosts.local import Local
from holdfast.workbench.machines.docker import Engine, ask_engine, engine_findings
from holdfast.workbench.machines.findings import Finding, findings
from holdfast.workbench.machines.usability import Seen
from holdfast.workbench.surroundings import Surroundings


class Checked(NamedTuple):
    """`engine` None: there is no Docker, or it cannot be used."""

    facts: Facts
    findings: tuple[Finding, ...]
    engine: Engine | None


def check_this_machine(around: Surroundings, timeout: float = TIMEOUT) -> Checked:
    """Raises StorageError when Holdfast's folder cannot be written, NotAvailable where this is not Linux."""
    with Local(around.home, around.environment).connect() as connection:
        facts = read_facts(connection, timeout)
        found = findings(facts, around.now())
        engine, about = _docker(connection) if facts.docker.version else (None, [])
    return Checked(facts, (*found, *about), engine)


def check_host(host: Host, around: Surroundings, timeout: float = TIMEOUT, in_container: bool = False) -> Seen:
    """The same look at any machine, as runs without containers need it unless `in_container`. Raises what `connect` and
    a request raise."""
    with host.connect() as connection:
        facts = read_facts(connection, timeout)
    return Seen(facts, tuple(findings(facts, around.now(), in_container=in_container)))


def _docker(connection: Connection) -> tuple[Engine | None, list[Finding]]:
    """Runs without containers need none of it, so nothing of it stops runs."""
    try:
        engine = ask_engine(connection)
    except FarSideError as error:
        return None, [Finding(error.message, f"{error.hint} Only targets with containers need it.".strip())]
    return engine, [each._replace(stops_runs=False) for each in engine_findings(engine)]
