"""What the facts of a machine mean for runs there, in sentences, each with what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.hosts.machine_report import (
    DeviceState,
    DockerFound,
    Folder,
    Gpu,
    Gpus,
    GpuState,
    MachineFacts,
    Memory,
    TemporaryFolder,
)
from holdfast.project.quantities import format_size
from holdfast.workbench.reach.contacts import CLOCK_OFF

LITTLE_DISK, NO_DISK = 2_000_000_000, 50_000_000
FEW_INODES, NO_INODES = 20_000, 200
_LITTLE_MEMORY = 500_000_000
_OLD_GLIBC = (2, 28)
"""What today's wheels are built for (manylinux_2_28)."""
_SAME = {"amd64": "x86_64", "arm64": "aarch64"}
_DRIVER_NOT_LOADED, _VERSION_MISMATCH = 9, 18
_ELSEWHERE = "Put it elsewhere: HOLDFAST_HOME for this machine, `computetarget attach --home` for another."


class MachineFinding(NamedTuple):
    """`stops_runs`: no run can work there until it is fixed."""

    message: str
    remedy: str
    stops_runs: bool = False


def findings(
    facts: MachineFacts, now: float | None = None, here: str = "", in_container: bool = False
) -> list[MachineFinding]:
    """What keeps runs from working comes first. `now` is the clock here at the moment when the facts were asked for,
    `here` the architecture of this machine where the facts are another's. Runs in containers have a C library of their
    own, and whether Docker works for them is found by trying it (`docker_check.py`)."""
    found = [
        *_of_folder(facts.folder),
        *_of_temporary(facts.temporary),
        *_of_architecture(facts.architecture, here),
        *(() if in_container else _of_library(facts.glibc)),
        *_of_memory(facts.memory),
        *_of_clock(facts.time, now),
        *(() if in_container else _of_docker(facts.docker, facts.user)),
        *_of_gpus(facts.gpus),
    ]
    return sorted(found, key=lambda each: not each.stops_runs)


def _of_folder(folder: Folder) -> Iterator[MachineFinding]:
    if folder.writable is False:
        yield MachineFinding(f"Holdfast's folder `{folder.path}` cannot be written.", _ELSEWHERE, stops_runs=True)
    free = _least(folder.free, None if folder.quota is None else _left(folder.quota.limit, folder.quota.used))
    if free is not None and free < LITTLE_DISK:
        why = "" if free == folder.free else " by the quota"
        message = f"There is little room for `{folder.path}`: {format_size(free)} free{why}."
        yield MachineFinding(
            message, "Make room (`holdfast experiment clean`), or " + _lower(_ELSEWHERE), free < NO_DISK
        )
    inodes = _least(
        folder.inodes_free, None if folder.quota is None else _left(folder.quota.files_limit, folder.quota.files)
    )
    if inodes is not None and inodes < FEW_INODES:
        message = f"Only {inodes} more files fit where `{folder.path}` is, however small."
        yield MachineFinding(
            message, "Remove old files and environments there, or " + _lower(_ELSEWHERE), inodes < NO_INODES
        )
    if folder.network:
        yield MachineFinding(
            f"Holdfast's folder `{folder.path}` is on a network file system ({folder.file_system}): it is slow with "
            "many small files, and locks may fail.",
            "Put it on a local disk, such as scratch: HOLDFAST_HOME, or `computetarget attach --home`.",
        )
    if folder.noexec:
        yield MachineFinding(
            f"Programs in `{folder.path}` may not be started (noexec): environments that are built there do not work.",
            _ELSEWHERE,
        )


def _of_temporary(folder: TemporaryFolder) -> Iterator[MachineFinding]:
    if folder.writable is False:
        yield MachineFinding(
            f"The temporary folder `{folder.path}` cannot be written.", "Set TMPDIR to a folder of yours."
        )
    elif folder.noexec:
        yield MachineFinding(
            f"Programs in the temporary folder `{folder.path}` may not be started (noexec): packages that build or "
            "unpack programs there fail.",
            "Set TMPDIR to a folder where they may: EnvironmentVariables of the run configuration.",
        )


def _of_architecture(there: str, here: str) -> Iterator[MachineFinding]:
    if there and here and _SAME.get(there, there) != _SAME.get(here.lower(), here.lower()):
        yield MachineFinding(
            f"The machine's architecture is {there}, the one here is {here}: programs and compiled modules (`.so`) "
            "that a project carries along do not work there.",
            "Scripts and data do. Keep what is compiled out of the project (.amlignore) and install it over there.",
        )


def _of_library(glibc: str | None) -> Iterator[MachineFinding]:
    if glibc is None:
        yield MachineFinding(
            "The system has another C library than glibc: most packages with native code do not install.",
            "Use a container with an ordinary distribution in it.",
        )
    elif version_of(glibc) < _OLD_GLIBC:
        yield MachineFinding(
            f"The system's glibc is {glibc}: newer packages with native code want {_OLD_GLIBC[0]}.{_OLD_GLIBC[1]}.",
            "Pin older versions of packages that do not install, or use a container.",
        )


def _of_memory(memory: Memory) -> Iterator[MachineFinding]:
    least = _least(memory.available, memory.limit)
    if least is not None and least < _LITTLE_MEMORY:
        yield MachineFinding(
            f"There is little memory: {format_size(least)} available.", "See what uses it: top -o %MEM"
        )


def _of_clock(time: float, now: float | None) -> Iterator[MachineFinding]:
    if now is not None and abs(time - now) > CLOCK_OFF:
        way = "ahead of" if time > now else "behind"
        yield MachineFinding(
            f"The machine's clock is {abs(time - now):.0f} s {way} the one here; times of its runs are its own.",
            "Let it be set by the network: timedatectl set-ntp true",
        )


def _of_docker(docker: DockerFound, user: str) -> Iterator[MachineFinding]:
    if docker.path is None or not docker.problem:
        return
    remedy = "See what `docker version` says there. Only targets with containers need it."
    if "permission denied" in docker.problem.lower():
        remedy = (
            f"Join its group and log in again: sudo usermod -aG docker {user}. Only targets with containers need it."
        )
    elif "daemon running" in docker.problem:
        remedy = "Start it: sudo systemctl start docker. Only targets with containers need it."
    yield MachineFinding(as_sentence(f"Docker cannot be used: {docker.problem}"), remedy)


def _of_gpus(gpus: Gpus) -> Iterator[MachineFinding]:
    match gpus.state:
        case GpuState.NO_DRIVER:
            yield MachineFinding(
                "There is no NVIDIA driver: runs use the CPU.", "With a GPU in it: install NVIDIA's driver."
            )
        case GpuState.TIMED_OUT:
            yield MachineFinding(
                f"The NVIDIA driver hangs: {gpus.problem}.",
                "Restart the machine; `sudo dmesg | grep -i xid` says what happened.",
            )
        case GpuState.FAILED:
            yield MachineFinding(
                as_sentence(f"The GPUs cannot be looked at: {gpus.problem}"), _driver_remedy(gpus.code)
            )
        case GpuState.OK if not gpus.devices:
            yield MachineFinding(
                "The NVIDIA driver is there and has no device.", "See what `nvidia-smi` and `lspci` say."
            )
    for device in gpus.devices:
        yield from _of_device(device)


def _driver_remedy(code: int | None) -> str:
    if code == _VERSION_MISMATCH:
        return "The driver was updated, and the old one is still loaded: restart the machine."
    if code == _DRIVER_NOT_LOADED:
        return "Load it: sudo modprobe nvidia. If that fails, install the driver anew for this kernel."
    return "See what `nvidia-smi` says; if it fails too, restart the machine."


def _of_device(device: Gpu) -> Iterator[MachineFinding]:
    shown = f"GPU {device.index}" + (f" ({device.name})" if device.name else "")
    if device.state is not DeviceState.OK:
        yield MachineFinding(
            as_sentence(f"{shown} does not work: {device.problem or device.state.value}"),
            f"Restart the machine, or try: sudo nvidia-smi --gpu-reset -i {device.index}",
        )
    elif device.mig and not device.instances:
        yield MachineFinding(
            f"{shown} is in MIG mode and has no instance: nothing can use it.",
            f"Make one (`nvidia-smi mig -lgip` lists sizes), or leave it: sudo nvidia-smi -i {device.index} -mig 0",
        )


def _least(*values: int | None) -> int | None:
    return min((each for each in values if each is not None), default=None)


def _left(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def as_sentence(text: str) -> str:
    """With a full stop, whatever another program has given it."""
    return text if text.endswith((".", "?", "!")) else text + "."


def version_of(text: str) -> tuple[int, ...]:
    """The first two numbers."""
    return tuple(int(each) for each in text.split(".")[:2] if each.isdigit())
