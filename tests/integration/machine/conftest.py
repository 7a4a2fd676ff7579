"""Simulated GPUs, and the far side as on a host."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.hosts.client import Client
from holdfast.hosts.host import Local
from holdfast.hosts.machine_report import MachineFacts
from kit.homes import furnish
from kit.nvml import Device, Simulated


@pytest.fixture(autouse=True)
def furnished(isolated: Path) -> None:
    """This machine after an earlier command."""
    furnish(isolated / ".holdfast", has_uv=False)


@pytest.fixture
def simulated(tmp_path: Path, needs: Callable[..., None]) -> Callable[..., Simulated]:
    """`simulated(Device(), …)` is a machine with these devices."""
    needs("gcc")

    def make(*devices: Device, **options: Any) -> Simulated:
        return Simulated(tmp_path / "gpus", devices, **options)

    return make


@pytest.fixture
def facts_of() -> Callable[..., MachineFacts]:
    """`facts_of(gpus)`: what the far side of this machine finds, with these GPUs or none."""

    def ask(gpus: Simulated | None = None, timeout: float = 30.0, **variables: str) -> MachineFacts:
        nothing = {"HOLDFAST_NVML": "/nowhere"}
        environment = {**os.environ, **(gpus.environment if gpus else nothing), **variables}
        with Local(Path(os.environ["HOLDFAST_HOME"]), environment).connect() as connection:
            return Client(connection).facts(timeout)

    return ask
