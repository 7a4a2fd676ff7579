"""A look at this machine: what there is, and what may keep runs from working."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.hosts.facts import TIMEOUT, Facts, read_facts
from holdfast.hosts.host import Host
from holdfast.hosts.local import Local
from holdfast.workbench.machines.findings import Finding, findings
from holdfast.workbench.surroundings import Surroundings


class Checked(NamedTuple):
    facts: Facts
    findings: list[Finding]


def check_this_machine(around: Surroundings, timeout: float = TIMEOUT) -> Checked:
    """Raises StorageError when Holdfast's folder cannot be written, NotAvailable where this is not Linux."""
    return check_host(Local(around.home, around.environment), around, timeout)


def check_host(host: Host, around: Surroundings, timeout: float = TIMEOUT) -> Checked:
    """The same look at any machine. Raises what `connect` and a request raise."""
    with host.connect() as connection:
        facts = read_facts(connection, timeout)
    return Checked(facts, findings(facts, around.now()))
