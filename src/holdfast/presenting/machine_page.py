"""A machine on a page, in two columns: what it has, what there is to say about it, and who uses its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.codec import encode
from holdfast.hosts.machine_report import (
    DeviceState,
    DockerReport,
    Folder,
    Gpu,
    GpuInstanceInUse,
    GpuInUse,
    GpuInventory,
    GpuOccupant,
    GpuState,
    MachineFacts,
    WaitingRun,
    Whose,
)
from holdfast.presenting.lines import Row, at_most, gibibytes
from holdfast.project.quantities import format_size, short_duration
from holdfast.workbench.machines.machine_findings import MachineFinding

ROWS_SHOWN = 5
"""Of Pythons and of a device's processes. `-o json` has all of them."""
PROCESSES_SHOWN, COMMAND_SHOWN = 10, 40
"""Of each device, where it is about who uses it, and characters of each."""


def as_dict(
    facts: MachineFacts, findings: Sequence[MachineFinding] = (), engine: DockerReport | None = None
) -> dict[str, Any]:
    """For JSON and queries. `engine`: of a machine that runs containers for us."""
    found = {"engine": encode(engine)} if engine is not None else {}
    return {**encode(facts), **found, "findings": [each._asdict() for each in findings]}


def rows(
    facts: MachineFacts, findings: Sequence[MachineFinding] = (), engine: DockerReport | None = None
) -> Iterator[Row]:
    """What the machine has, then what was found."""
    yield from _facts(facts, engine)
    for number, finding in enumerate(findings, 1):
        title = f"Finding {number}"
        yield title, ("stops runs: " if finding.stops_runs else "") + finding.message
        if finding.remedy:
            yield title, finding.remedy


def _facts(facts: MachineFacts, engine: DockerReport | None) -> Iterator[Row]:
    library = f"glibc {facts.glibc}" if facts.glibc else "without glibc"
    yield "Machine", f"{facts.host}, as {facts.user}"
    yield "System", f"{facts.system}, Linux {facts.kernel}, {facts.architecture}, {library}"
    yield "Cores", _cores(facts)
    yield "Memory", _memory(facts)
    yield "Folder", _folder(facts.folder)
    yield "Temporary", facts.temporary.path + (" (noexec)" if facts.temporary.noexec else "")
    for python in facts.pythons[:ROWS_SHOWN]:
        yield "Python", f"{python.version}  {python.path}"
    if len(facts.pythons) > ROWS_SHOWN:
        yield "Python", f"… {len(facts.pythons) - ROWS_SHOWN} more: -o json"
    if engine is not None:
        yield engine.title, _engine(engine)
    else:
        yield "Docker", facts.docker.version or ("does not answer" if facts.docker.path else "none")
    gpus = facts.gpus
    yield "Driver", _driver(gpus.state, gpus.driver, gpus.cuda, gpus.problem)
    for device in gpus.devices:
        for line in _device(device):
            yield f"GPU {device.index}", line


def _engine(engine: DockerReport) -> str:
    kinds = [
        *(["rootless"] if engine.is_rootless else []),
        *(["users remapped"] if engine.remaps else []),
    ]
    room = f", {_size_text(engine.free)} of {_size_text(engine.total)} free" if engine.total is not None else ""
    return ", ".join([engine.version, *kinds, f"images in {engine.root}{room}"])


def _cores(facts: MachineFacts) -> str:
    cores = facts.cores
    text = "unknown" if cores.usable is None else str(cores.usable)
    if cores.online is not None and cores.usable is not None and cores.usable < cores.online:
        text += f" of {cores.online}"
    return text + (f", a share of {cores.quota:g}" if cores.quota is not None else "")


def _memory(facts: MachineFacts) -> str:
    memory = facts.memory
    text = f"{_size_text(memory.available)} of {_size_text(memory.total)} available"
    return text + (f", limited to {format_size(memory.limit)}" if memory.limit is not None else "")


def _size_text(count: int | None) -> str:
    return "unknown" if count is None else format_size(count)


def _folder(folder: Folder) -> str:
    kind = folder.file_system or "unknown file system"
    parts = [f"{folder.path}: {kind}{', over the network' if folder.network else ''}"]
    parts.append(f"{_size_text(folder.free)} of {_size_text(folder.total)} free")
    if folder.inodes_free is not None:
        parts.append(f"room for {folder.inodes_free} files")
    if folder.quota is not None and folder.quota.limit is not None:
        parts.append(f"quota {format_size(folder.quota.used)} of {format_size(folder.quota.limit)}")
    return ", ".join(parts)


def _driver(state: GpuState, version: str | None, cuda: str | None, problem: str | None) -> str:
    driver = f"NVIDIA {version or 'of unknown version'}"
    match state:
        case GpuState.NO_DRIVER:
            return "none from NVIDIA"
        case GpuState.FAILED | GpuState.TIMED_OUT:
            return f"{driver}, {state.value}: {problem}"
        case GpuState.OK:
            return f"{driver}, CUDA up to {cuda or 'unknown'}"


def _device(device: Gpu) -> Iterator[str]:
    """Sizes in GiB, as sizes of GPUs are usually given."""
    name = device.name or "unknown"
    if device.state is not DeviceState.OK:
        yield f"{name}: {device.state.value}" + (f", {device.problem}" if device.problem else "")
        return
    capability = "unknown" if device.capability is None else "{}.{}".format(*device.capability)
    yield f"{name}, {_free(device.memory_free, device.memory_total)}, compute capability {capability}"
    yield f"{device.uuid or 'unknown UUID'}, PCI {device.pci or 'unknown'}"
    if device.sm_clock_max is not None and device.memory_clock_max is not None:
        now = f"{_clock(device.sm_clock)} and {_clock(device.memory_clock)} MHz now"
        yield f"SM up to {device.sm_clock_max} MHz, memory up to {device.memory_clock_max} MHz ({now})"
    for instance in device.instances:
        free = _free(instance.memory_free, instance.memory_total)
        yield f"{instance.name or f'MIG instance {instance.index}'}, {free}, {instance.uuid or 'unknown UUID'}"
    if device.processes is None:
        yield "processes: the driver does not tell"
    for process in (device.processes or ())[:ROWS_SHOWN]:
        yield f"process {process.pid}: {gibibytes(process.memory)} ({process.kind})"
    if device.processes and len(device.processes) > ROWS_SHOWN:
        yield f"… {len(device.processes) - ROWS_SHOWN} more processes: -o json"


def _free(free: int | None, total: int | None) -> str:
    return f"{gibibytes(free)} of {gibibytes(total)} free"


def _clock(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def users_document(look: GpuInventory) -> dict[str, Any]:
    found: dict[str, Any] = encode(look)
    return found


def user_rows(look: GpuInventory) -> Iterator[Row]:
    """Who uses the GPUs."""
    yield "Driver", _driver(look.state, look.driver, look.cuda, look.problem)
    for device in look.devices:
        title = f"GPU {device.number}"
        yield from ((title, line) for line in _use(device))
    for place, waiting in enumerate(look.queue, 1):
        yield f"{_ordinal(place)} in line", _waiting(waiting)
    if not look.devices and look.state is GpuState.OK:
        yield "GPUs", "none"


def _use(device: GpuInUse) -> Iterator[str]:
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


def _state(unit: GpuInUse | GpuInstanceInUse) -> str:
    """Whether a run that asks now would get it."""
    if unit.lease is not None:
        return f"leased to {_run(unit.lease.run, unit.lease.user)}"
    if unit.is_used is None:
        return "not leased; whether it is used is not known"
    return "in use without a lease: not handed out" if unit.is_used else "free"


def _waiting(waiting: WaitingRun) -> str:
    who = _run(waiting.run, waiting.user) if waiting.run else f"process {waiting.pid} of {waiting.user or 'unknown'}"
    count = "1 GPU" if waiting.gpus == 1 else f"{waiting.gpus} GPUs"
    since = f", since {short_duration(waiting.waited)}" if waiting.waited is not None else ""
    return f"{who}, for {count}{since}"


def _run(run: str | None, user: str | None) -> str:
    return (f"run {run}" if run else "a run") + (f" of {user}" if user else "")


def _ordinal(place: int) -> str:
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _process(process: GpuOccupant) -> str:
    what = process.command or process.name or "unknown"
    user = f" of {process.user}" if process.user else ""
    match process.whose:
        case Whose.MINE:
            project = f" (project {process.project})" if process.project else ""
            whose = f"your run {process.run}{project}"
        case Whose.RUN:
            whose = f"the run {process.run}"
        case Whose.STRANGER:
            whose = "not a run of Holdfast's"
    return f"process {process.pid}{user}: {whose}, {gibibytes(process.memory)}, {at_most(what, COMMAND_SHOWN)}"
