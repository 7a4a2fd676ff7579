"""Who uses the GPUs of a machine, on a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from holdfast.cli import pages
from holdfast.cli.gpu_page import Row, gibibytes
from holdfast.hosts.facts import GpuState
from holdfast.project.durations import short_duration
from holdfast.workbench.machines.gpus import Device, Instance, Look, Process, Waiting, Whose

PROCESSES_SHOWN, COMMAND_SHOWN = 10, 40
"""Of each device, and characters of each; `-o json` has all of them."""


def draw(look: Look, stream: TextIO) -> None:
    pages.draw(list(_look_rows(look)), stream)


def _look_rows(look: Look) -> Iterator[Row]:
    yield "Driver", _driver(look)
    for device in look.devices:
        title = f"GPU {device.number}"
        yield from ((title, line) for line in _device(device))
    for place, waiting in enumerate(look.queue, 1):
        yield f"{_ordinal(place)} in line", _waiting(waiting)
    if not look.devices and look.state is GpuState.OK:
        yield "GPUs", "none"


def _driver(look: Look) -> str:
    if look.state is GpuState.NO_DRIVER:
        return "none from NVIDIA"
    driver = f"NVIDIA {look.driver or 'of unknown version'}"
    if look.state is GpuState.OK:
        return f"{driver}, CUDA up to {look.cuda or 'unknown'}"
    return f"{driver}, {look.state.value}: {look.problem}"


def _device(device: Device) -> Iterator[str]:
    name = device.name or "unknown"
    if device.state != "ok":
        yield f"{name}: {device.state}" + (f", {device.problem}" if device.problem else "")
        return
    busy = "use unknown" if device.utilization is None else f"{device.utilization} % busy"
    memory = f"{gibibytes(device.memory_used).removesuffix(' GiB')} of {gibibytes(device.memory_total)}"
    more = [
        *([f"{device.temperature} °C"] if device.temperature is not None else []),
        *([f"{device.power:.0f} W"] if device.power is not None else []),
    ]
    yield ", ".join([name, busy, memory, *more])
    yield device.uuid or "unknown UUID"
    if device.lease is not None or not device.instances:
        yield _state(device)
    for part in device.instances:
        yield f"{part.name or 'MIG instance'}, {part.uuid or 'unknown UUID'}: {_state(part)}"
    if device.processes is None:
        yield "processes: the driver does not tell"
        return
    yield from (_process(each) for each in device.processes[:PROCESSES_SHOWN])
    if len(device.processes) > PROCESSES_SHOWN:
        yield f"… {len(device.processes) - PROCESSES_SHOWN} more processes: -o json"


def _state(unit: Device | Instance) -> str:
    """Whether a run that asks now would get it."""
    if unit.lease is not None:
        return f"leased to {_run(unit.lease.run, unit.lease.user)}"
    if unit.is_used is None:
        return "not leased; whether it is used is not known"
    return "in use without a lease: not handed out" if unit.is_used else "free"


def _waiting(waiting: Waiting) -> str:
    who = _run(waiting.run, waiting.user) if waiting.run else f"process {waiting.pid} of {waiting.user or 'unknown'}"
    count = "1 GPU" if waiting.gpus == 1 else f"{waiting.gpus} GPUs"
    since = f", since {short_duration(waiting.waited)}" if waiting.waited is not None else ""
    return f"{who}, for {count}{since}"


def _run(run: str | None, user: str | None) -> str:
    return (f"run {run}" if run else "a run") + (f" of {user}" if user else "")


def _ordinal(place: int) -> str:
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _process(process: Process) -> str:
    what = process.command or process.name or "unknown"
    shown = what if len(what) <= COMMAND_SHOWN else f"{what[: COMMAND_SHOWN - 1]}…"
    user = f" of {process.user}" if process.user else ""
    match process.whose:
        case Whose.MINE:
            project = f" (project {process.project})" if process.project else ""
            whose = f"your run {process.run}{project}"
        case Whose.RUN:
            whose = f"the run {process.run}"
        case Whose.STRANGER:
            whose = "not a run of Holdfast's"
    return f"process {process.pid}{user}: {whose}, {gibibytes(process.memory)}, {shown}"
