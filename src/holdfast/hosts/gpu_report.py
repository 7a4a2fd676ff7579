"""Who uses the GPUs of a machine: the far side's answer to `gpus`, as values. None is always "not known"."""

from __future__ import annotations

from enum import Enum

from holdfast.frozen import dataclass
from holdfast.hosts.machine_report import GpuState
from holdfast.hosts.replies import Seconds


class Whose(str, Enum):
    """A run of the account that asks, a run of another user, or a process that is no run's."""

    MINE = "mine"
    RUN = "run"
    STRANGER = "stranger"


@dataclass(frozen=True)
class Holder:
    """A run that has leased a GPU; empty where it cannot be told which."""

    user: str
    run: str
    pid: int | None


@dataclass(frozen=True)
class GpuOccupant:
    """`memory` in bytes; `kind` is `compute`, `graphics` or `mps`; `project` is known of one's own runs."""

    pid: int
    user: str | None
    name: str | None
    command: str | None
    memory: int | None
    kind: str
    whose: Whose
    run: str | None
    project: str | None


@dataclass(frozen=True)
class Instance:
    """A part of a device that is cut by MIG."""

    uuid: str | None
    name: str | None
    memory_used: int | None
    memory_total: int | None
    lease: Holder | None
    is_used: bool | None = None


@dataclass(frozen=True)
class Device:
    """Per cent, bytes, degrees, watts. `state` is `ok`, `lost` or `failed`. `processes` None: the driver does not
    tell. `is_used`: a process computes on it, with a lease or without."""

    number: int
    uuid: str | None
    name: str | None
    state: str
    problem: str
    utilization: int | None
    memory_used: int | None
    memory_total: int | None
    temperature: int | None
    power: float | None
    lease: Holder | None
    instances: tuple[Instance, ...]
    processes: tuple[GpuOccupant, ...] | None
    is_used: bool | None = None


@dataclass(frozen=True)
class WaitingRun:
    """A run that waits for so many GPUs; `waited` is for how many seconds. The beginning of a long `run` may be
    `~`."""

    gpus: int
    user: str | None
    pid: int
    waited: float | None
    run: str | None = None


@dataclass(frozen=True)
class GpuInventory:
    """`problem` is in the driver's words; `time` is the machine's; the first of the `queue` is next."""

    state: GpuState
    problem: str
    driver: str | None
    cuda: str | None
    time: Seconds | None
    devices: tuple[Device, ...]
    queue: tuple[WaitingRun, ...]
