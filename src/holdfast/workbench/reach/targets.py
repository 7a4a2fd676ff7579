"""The one place that says which product of host, engine and container a compute target's type stands for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import NotAvailable
from holdfast.frozen import dataclass
from holdfast.project.compute import CONTAINER_TYPES, REMOTE_TYPES, ComputeTarget
from holdfast.workbench.reach.context import Context

if TYPE_CHECKING:  # loaded when they are made: a connection is begun as early as possible
    from holdfast.containers import Container
    from holdfast.hosts.host import Host
    from holdfast.hosts.ssh import Destination, Near
    from holdfast.plan import EnginePlan

ENGINE = "HOLDFAST_ENGINE"
"""Names another engine of the host than its own processes; the tests have one."""
PLANNED = {
    "cluster": "Spark clusters (`cluster`) do not work in this version yet.",
}


@dataclass(frozen=True)
class Product:
    host: Host
    engine: EnginePlan
    container: Container

    @property
    def is_this_system(self) -> bool:
        """Whether a run finds the programs that the client finds: on this machine, and in no image."""
        return self.host.is_here and not self.container.has_image


def product_of(target: ComputeTarget, context: Context) -> Product:
    """Raises NotAvailable for a type that this version knows but cannot run."""
    from holdfast.plan import DIRECT, EnginePlan

    engine = EnginePlan(context.environment.get(ENGINE) or DIRECT)
    return Product(host_of(target, context), engine, container_of(target))


def host_of(target: ComputeTarget, context: Context) -> Host:
    """The host alone. Raises as `product_of` does."""
    if target.type in PLANNED:
        raise not_available(target.type)
    if target.type in REMOTE_TYPES:
        from holdfast.hosts.bootstrap import DEFAULT_HOME
        from holdfast.hosts.ssh import Ssh

        return Ssh(destination_of(target, context), near_side(context), target.home or DEFAULT_HOME)
    from holdfast.hosts.host import Local

    return Local(context.home, context.environment)


def container_of(target: ComputeTarget) -> Container:
    """The container alone."""
    from holdfast.containers import Bare, Docker

    return Docker(target) if target.type in CONTAINER_TYPES else Bare()


def destination_of(target: ComputeTarget, context: Context) -> Destination:
    from holdfast.hosts.ssh import Destination

    key = target.private_key
    if key is not None and key.startswith("~/"):
        key = f"{context.user_home}{key[1:]}"
    return Destination(target.address or "", target.port, target.username, Path(key) if key else None)


def near_side(context: Context) -> Near:
    """`HOLDFAST_SSH` names another ssh, with options if need be: `ssh -F file`."""
    import shlex

    from holdfast.hosts.shared_connection import runtime_folder
    from holdfast.hosts.ssh import Near

    program = tuple(shlex.split(context.environment.get("HOLDFAST_SSH", ""), posix=os.name != "nt")) or ("ssh",)
    temporary = context.environment.get("TMPDIR") or context.environment.get("TEMP") or "/tmp"  # noqa: S108 - a folder of our own is made in it
    runtime = runtime_folder(context.environment.get("XDG_RUNTIME_DIR"), Path(temporary))
    return Near(context.home, context.environment, runtime, program, context.ask)


def not_available(kind: str) -> NotAvailable:
    return NotAvailable(PLANNED[kind], "What works: targets of type `local`, `docker`, `remote` and `remotedocker`.")
