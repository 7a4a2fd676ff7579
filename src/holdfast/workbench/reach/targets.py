"""The one place that says which product of host, engine and container a compute target's type stands for."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import NotAvailable
from holdfast.frozen import dataclass
from holdfast.installed_programs import find_program
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


def product_of(target: ComputeTarget, context: Context, secrets: Collection[str] = ()) -> Product:
    """Raises NotAvailable for a type that this version knows but cannot run. `secrets`: variables that a run here gets
    by its plan, and that none of its other processes is to have."""
    from holdfast.plan import DIRECT, EnginePlan

    engine = EnginePlan(context.environment.get(ENGINE) or DIRECT)
    return Product(host_of(target, context, secrets), engine, container_of(target))


def host_of(target: ComputeTarget, context: Context, secrets: Collection[str] = ()) -> Host:
    """The host alone. Raises as `product_of` does."""
    if target.type in PLANNED:
        raise not_available(target.type)
    if target.type in REMOTE_TYPES:
        from holdfast.hosts.bootstrap import DEFAULT_HOME
        from holdfast.hosts.ssh import Ssh

        return Ssh(destination_of(target, context), near_side(context), target.home or DEFAULT_HOME)
    from holdfast.hosts.host import Local

    return Local(context.home, {name: value for name, value in context.environment.items() if name not in secrets})


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
    """`HOLDFAST_SSH` names another ssh, with options if need be: `ssh -F file`. Raises HostError where others may write
    to Holdfast's folder here: it has keys, and the program that asks for passwords."""
    import shlex

    from holdfast.hosts.socket_folder import runtime_folder
    from holdfast.hosts.ssh import Near
    from holdfast.project.own_home import require_own

    require_own(context.home)
    words = shlex.split(context.environment.get("HOLDFAST_SSH", ""), posix=os.name != "nt") or ["ssh"]
    if not os.path.dirname(words[0]):  # the usual place where it is missing: the error names it
        words[0] = find_program(words[0], context.environment) or f"/usr/bin/{words[0]}"
    temporary = context.environment.get("TMPDIR") or context.environment.get("TEMP") or "/tmp"  # noqa: S108 - a folder of our own is made in it
    runtime = runtime_folder(context.environment.get("XDG_RUNTIME_DIR"), Path(temporary), context.home)
    return Near(context.home, context.environment, runtime, tuple(words), context.ask)


def not_available(kind: str) -> NotAvailable:
    return NotAvailable(PLANNED[kind], "What works: targets of type `local`, `docker`, `remote` and `remotedocker`.")
