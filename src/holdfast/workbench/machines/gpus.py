"""Who uses the GPUs of a machine: the far side's answer to `gpus`, as values. None is always "not known"."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from enum import Enum
from typing import Any

from holdfast.frozen import dataclass
from holdfast.hosts.facts import GpuState
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.replies import number, rows, seconds, text, understood
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import host_of


class Whose(str, Enum):
    """A run of the account that asks, a run of somebody else's, or a process that is no run's."""

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
class Process:
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
    tell. `is_used`: somebody computes on it, with a lease or without."""

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
    processes: tuple[Process, ...] | None
    is_used: bool | None = None


@dataclass(frozen=True)
class Waiting:
    """Somebody who waits for so many GPUs; `waited` is for how many seconds. The beginning of a long `run` may be
    `~`."""

    gpus: int
    user: str | None
    pid: int
    waited: float | None
    run: str | None = None


@dataclass(frozen=True)
class Look:
    """`problem` is in the driver's words; `time` is the machine's; the first of the `queue` is next."""

    state: GpuState
    problem: str
    driver: str | None
    cuda: str | None
    time: float | None
    devices: tuple[Device, ...]
    queue: tuple[Waiting, ...]


def watch(target: ComputeTarget, around: Surroundings) -> Generator[Look, None, None]:
    """A look at the target's machine for each that is taken, all over one connection, which is closed with the
    iterator. Raises what `connect` and a request raise."""
    with host_of(target, around).connect() as connection:
        while True:
            yield parse(connection.request("gpus"))


def parse(answer: Any) -> Look:
    with understood("gpus"):
        return Look(
            state=GpuState(answer["state"]),
            problem=str(answer.get("problem") or ""),
            driver=_text(answer.get("driver")),
            cuda=_text(answer.get("cuda")),
            time=_amount(answer.get("time")),
            devices=tuple(_device(each) for each in rows(answer["devices"])),
            queue=tuple(_waiting(each) for each in rows(answer["queue"])),
        )


def _device(row: Mapping[str, Any]) -> Device:
    processes = row.get("processes")
    return Device(
        number=number(row["index"]),
        uuid=_text(row.get("uuid")),
        name=_text(row.get("name")),
        state=text(row["state"]),
        problem=str(row.get("problem") or ""),
        utilization=_number(row.get("utilization")),
        memory_used=_number(row.get("memory_used")),
        memory_total=_number(row.get("memory_total")),
        temperature=_number(row.get("temperature")),
        power=_amount(row.get("power")),
        lease=_holder(row.get("leased_by")),
        instances=tuple(_instance(each) for each in rows(row.get("instances") or [])),
        processes=None if processes is None else tuple(_process(each) for each in rows(processes)),
        is_used=_flag(row.get("is_used")),
    )


def _holder(row: Mapping[str, Any] | None) -> Holder | None:
    if row is None:
        return None
    return Holder(str(row.get("user") or ""), str(row.get("run") or ""), _number(row.get("pid")))


def _instance(row: Mapping[str, Any]) -> Instance:
    used, total = _number(row.get("memory_used")), _number(row.get("memory_total"))
    lease, is_used = _holder(row.get("leased_by")), _flag(row.get("is_used"))
    return Instance(_text(row.get("uuid")), _text(row.get("name")), used, total, lease, is_used)


def _process(row: Mapping[str, Any]) -> Process:
    return Process(
        pid=number(row["pid"]),
        user=_text(row.get("user")),
        name=_text(row.get("name")),
        command=_text(row.get("command")),
        memory=_number(row.get("memory")),
        kind=str(row.get("kind") or ""),
        whose=Whose(row["whose"]),
        run=_text(row.get("run")),
        project=_text(row.get("project")),
    )


def _waiting(row: Mapping[str, Any]) -> Waiting:
    waited, run = _amount(row.get("waited")), _text(row.get("run"))
    return Waiting(number(row["gpus"]), _text(row.get("user")), number(row["pid"]), waited, run)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: object) -> int | None:
    return None if value is None else number(value)


def _amount(value: object) -> float | None:
    """A time, a duration or watts; what no calendar and no machine has is not known."""
    try:
        return None if value is None else seconds(value)
    except ValueError:
        return None
