"""The one place that says which product of host, engine and container a compute target's type stands for."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.containers.bare import Bare
from holdfast.containers.container import Container
from holdfast.engines.direct import Direct
from holdfast.engines.engine import Engine
from holdfast.errors import NotAvailable
from holdfast.hosts.host import Host
from holdfast.hosts.local import Local
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.surroundings import Surroundings

PLANNED = {
    "docker": "Containers on this machine (`docker`, `localdocker`) do not work in this version yet.",
    "remote": "Machines over SSH (`remote`) do not work in this version yet.",
    "remotedocker": "Containers on a machine over SSH (`remotedocker`) do not work in this version yet.",
    "cluster": "Spark clusters (`cluster`) do not work in this version yet.",
}


@dataclass(frozen=True)
class Product:
    host: Host
    engine: Engine
    container: Container


def product_of(target: ComputeTarget, around: Surroundings) -> Product:
    """Raises NotAvailable for a type that this version knows but cannot run."""
    if target.type == "local":
        return Product(Local(around.home, around.environment), Direct(), Bare())
    raise not_available(target.type)


def not_available(kind: str) -> NotAvailable:
    return NotAvailable(PLANNED[kind], "What works: a target of type `local` (holdfast submit -c local SCRIPT).")
