"""Looks at who uses the GPUs of a machine, one after the other."""

from __future__ import annotations

from collections.abc import Generator

from holdfast.hosts.client import Client
from holdfast.hosts.gpu_report import GpuInventory
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import host_of


def watch(target: ComputeTarget, context: Context) -> Generator[GpuInventory, None, None]:
    """A look at the target's machine for each that is taken, all over one connection, which is closed with the
    iterator. Raises what `connect` and a request raise."""
    with host_of(target, context).connect() as connection:
        while True:
            yield Client(connection).gpus()
