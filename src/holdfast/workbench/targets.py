"""The one place that says which product of host, engine and container a compute target's type stands for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import NotAvailable
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.surroundings import Surroundings

if TYPE_CHECKING:  # loaded when they are made: a connection is begun as early as possible
    from holdfast.containers.container import Container
    from holdfast.engines.engine import Engine
    from holdfast.hosts.host import Host
    from holdfast.hosts.ssh import Destination, Near, Ssh

PLANNED = {
    "docker": "Containers on this machine (`docker`, `localdocker`) do not work in this version yet.",
    "remotedocker": "Containers on a machine over SSH (`remotedocker`) do not work in this version yet.",
    "cluster": "Spark clusters (`cluster`) do not work in this version yet.",
}


class Product(NamedTuple):
    host: Host
    engine: Engine
    container: Container


def product_of(target: ComputeTarget, around: Surroundings) -> Product:
    """Raises NotAvailable for a type that this version knows but cannot run."""
    from holdfast.containers.bare import Bare
    from holdfast.engines.direct import Direct

    return Product(host_of(target, around), Direct(), Bare())


def host_of(target: ComputeTarget, around: Surroundings) -> Host:
    """The host alone. Raises as `product_of` does."""
    if target.type == "local":
        from holdfast.hosts.local import Local

        return Local(around.home, around.environment)
    if target.type == "remote":
        return ssh_to(target, around)
    raise not_available(target.type)


def ssh_to(target: ComputeTarget, around: Surroundings) -> Ssh:
    from holdfast.hosts.bootstrap import DEFAULT_HOME
    from holdfast.hosts.ssh import Ssh

    return Ssh(destination_of(target, around), near_side(around), target.home or DEFAULT_HOME)


def destination_of(target: ComputeTarget, around: Surroundings) -> Destination:
    from holdfast.hosts.ssh import Destination

    key = target.private_key
    if key is not None and key.startswith("~/"):
        key = f"{around.user_home}{key[1:]}"
    return Destination(target.address or "", target.port, target.username, Path(key) if key else None)


def near_side(around: Surroundings) -> Near:
    """`HOLDFAST_SSH` names another ssh, with options if need be: `ssh -F file`."""
    import shlex

    from holdfast.hosts.multiplexing import runtime_folder
    from holdfast.hosts.ssh import Near

    program = tuple(shlex.split(around.environment.get("HOLDFAST_SSH", ""), posix=os.name != "nt")) or ("ssh",)
    temporary = around.environment.get("TMPDIR") or around.environment.get("TEMP") or "/tmp"  # noqa: S108 - a folder of our own is made in it
    runtime = runtime_folder(around.environment.get("XDG_RUNTIME_DIR"), Path(temporary))
    return Near(around.home, around.environment, runtime, program, around.ask)


def not_available(kind: str) -> NotAvailable:
    return NotAvailable(PLANNED[kind], "What works: targets of type `local` and `remote`.")
