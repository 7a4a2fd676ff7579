"""A machine on a page: what it has and what there is to say about it, in two columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from holdfast.cli import pages
from holdfast.frozen import asdict
from holdfast.hosts.facts import DeviceState, Facts, Folder, Gpu, GpuState
from holdfast.project.sizes import format_size
from holdfast.workbench.machines.docker import Engine
from holdfast.workbench.machines.findings import Finding

ROWS_SHOWN = 5
"""Of Pythons and of a device's processes. `-o json` has all of them."""
GIB = 1 << 30


def as_dict(facts: Facts, findings: Sequence[Finding] = (), engine: Engine | None = None) -> dict[str, Any]:
    """For JSON and queries. `engine`: of a machine that runs containers for us."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(facts)))  # queries know lists, and not tuples
    if engine is not None:
        plain["engine"] = json.loads(json.dumps(asdict(engine)))
    return {**plain, "findings": [each._asdict() for each in findings]}


def show_facts(
    facts: Facts, findings: Sequence[Finding] = (), stream: TextIO | None = None, engine: Engine | None = None
) -> None:
    pages.draw([*_rows(facts, engine), *_finding_rows(findings)], stream or sys.stdout)


def _rows(facts: Facts, engine: Engine | None) -> Iterator[tuple[str, str]]:
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
    yield "Driver", _driver(facts)
    for device in facts.gpus.devices:
        for line in _device(device):
            yield f"GPU {device.index}", line


def _engine(engine: Engine) -> str:
    kinds = [
        *(["rootless"] if engine.is_rootless else []),
        *(["users remapped"] if engine.remaps else []),
    ]
    room = f", {_size(engine.free)} of {_size(engine.total)} free" if engine.total is not None else ""
    return ", ".join([engine.version, *kinds, f"images in {engine.root}{room}"])


def _finding_rows(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    for number, finding in enumerate(findings, 1):
        title = f"Finding {number}"
        yield title, ("stops runs: " if finding.stops_runs else "") + finding.message
        if finding.remedy:
            yield title, finding.remedy


def _cores(facts: Facts) -> str:
    cores = facts.cores
    text = "unknown" if cores.usable is None else str(cores.usable)
    if cores.online is not None and cores.usable is not None and cores.usable < cores.online:
        text += f" of {cores.online}"
    return text + (f", a share of {cores.quota:g}" if cores.quota is not None else "")


def _memory(facts: Facts) -> str:
    memory = facts.memory
    text = f"{_size(memory.available)} of {_size(memory.total)} available"
    return text + (f", limited to {format_size(memory.limit)}" if memory.limit is not None else "")


def _folder(folder: Folder) -> str:
    kind = folder.file_system or "unknown file system"
    parts = [f"{folder.path}: {kind}{', over the network' if folder.network else ''}"]
    parts.append(f"{_size(folder.free)} of {_size(folder.total)} free")
    if folder.inodes_free is not None:
        parts.append(f"room for {folder.inodes_free} files")
    if folder.quota is not None and folder.quota.limit is not None:
        parts.append(f"quota {format_size(folder.quota.used)} of {format_size(folder.quota.limit)}")
    return ", ".join(parts)


def _driver(facts: Facts) -> str:
    gpus = facts.gpus
    match gpus.state:
        case GpuState.NO_DRIVER:
            return "none from NVIDIA"
        case GpuState.FAILED | GpuState.TIMED_OUT:
            return f"NVIDIA {gpus.driver or 'of unknown version'}, {gpus.state.value}: {gpus.problem}"
        case GpuState.OK:
            return f"NVIDIA {gpus.driver or 'of unknown version'}, CUDA up to {gpus.cuda or 'unknown'}"


def _device(device: Gpu) -> Iterator[str]:
    """Sizes in GiB, as everybody names the sizes of GPUs."""
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
        yield f"process {process.pid}: {_gibibytes(process.memory)} ({process.kind})"
    if device.processes and len(device.processes) > ROWS_SHOWN:
        yield f"… {len(device.processes) - ROWS_SHOWN} more processes: -o json"


def _free(free: int | None, total: int | None) -> str:
    return f"{_gibibytes(free)} of {_gibibytes(total)} free"


def _gibibytes(count: int | None) -> str:
    return "unknown" if count is None else f"{count / GIB:.2f} GiB"


def _size(count: int | None) -> str:
    return "unknown" if count is None else format_size(count)


def _clock(value: int | None) -> str:
    return "unknown" if value is None else str(value)
