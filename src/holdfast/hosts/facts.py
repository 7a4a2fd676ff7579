"""What is known of a machine, as values: the far side's answer to `facts`. None is always "not known"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from holdfast.frozen import dataclass
from holdfast.hosts.connection import Connection

TIMEOUT = 10.0
"""Seconds that the far side gives each program that it asks."""


class GpuState(str, Enum):
    """Of the driver as a whole."""

    NO_DRIVER = "no-driver"
    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


class DeviceState(str, Enum):
    OK = "ok"
    LOST = "lost"
    FAILED = "failed"


@dataclass(frozen=True)
class PythonFound:
    path: str
    version: str


@dataclass(frozen=True)
class Cores:
    """`usable` by this user's processes; `quota` is the share that a control group leaves."""

    online: int | None
    usable: int | None
    quota: float | None


@dataclass(frozen=True)
class Memory:
    """Bytes. `limit` is a control group's."""

    total: int | None
    available: int | None
    limit: int | None


@dataclass(frozen=True)
class Quota:
    """This user's limits on the file system, in bytes and in files; None is no limit."""

    used: int
    limit: int | None
    files: int
    files_limit: int | None


@dataclass(frozen=True)
class Folder:
    """Holdfast's folder there and the file system that it is on."""

    path: str
    file_system: str | None
    mount_point: str | None
    source: str | None
    network: bool | None
    noexec: bool | None
    writable: bool | None
    total: int | None
    free: int | None
    inodes_total: int | None
    inodes_free: int | None
    quota: Quota | None


@dataclass(frozen=True)
class TemporaryFolder:
    path: str
    noexec: bool | None
    writable: bool | None
    free: int | None


@dataclass(frozen=True)
class DockerFound:
    """`path` of the command, the server's `version`, or the `problem` that keeps this user from it."""

    path: str | None
    version: str | None
    problem: str


@dataclass(frozen=True)
class GpuProcess:
    pid: int
    memory: int | None
    kind: str


@dataclass(frozen=True)
class GpuInstance:
    """A MIG instance."""

    index: int
    name: str | None
    uuid: str | None
    memory_total: int | None
    memory_used: int | None
    memory_free: int | None


@dataclass(frozen=True)
class Gpu:
    """Memory in bytes, clocks in MHz. `processes` None: the driver does not tell."""

    index: int
    state: DeviceState
    problem: str
    name: str | None
    uuid: str | None
    capability: tuple[int, int] | None
    memory_total: int | None
    memory_used: int | None
    memory_free: int | None
    sm_clock: int | None
    sm_clock_max: int | None
    memory_clock: int | None
    memory_clock_max: int | None
    pci: str | None
    mig: bool | None
    instances: tuple[GpuInstance, ...]
    processes: tuple[GpuProcess, ...] | None


@dataclass(frozen=True)
class Gpus:
    """`problem` is in NVML's words, `code` its number for it."""

    state: GpuState
    problem: str
    code: int | None
    driver: str | None
    cuda: str | None
    devices: tuple[Gpu, ...]


@dataclass(frozen=True)
class Facts:
    """`python` runs the far side; `pythons` are all that were found there. `time` is the machine's own clock."""

    time: float
    host: str
    user: str
    system: str
    kernel: str
    architecture: str
    glibc: str | None
    python: PythonFound
    pythons: tuple[PythonFound, ...]
    cores: Cores
    memory: Memory
    folder: Folder
    temporary: TemporaryFolder
    docker: DockerFound
    gpus: Gpus


def read_facts(connection: Connection, timeout: float = TIMEOUT) -> Facts:
    """Ask the far side. Takes a moment, and at most `timeout` seconds more where something there does not answer."""
    return parse_facts(connection.request("facts", {"timeout": timeout}))


def parse_facts(answer: Mapping[str, Any]) -> Facts:
    """What a far side of another version does not say is not known."""
    return Facts(
        time=float(answer.get("time") or 0.0),
        host=str(answer.get("host") or ""),
        user=str(answer.get("user") or ""),
        system=str(answer.get("system") or ""),
        kernel=str(answer.get("kernel") or ""),
        architecture=str(answer.get("architecture") or ""),
        glibc=answer.get("glibc"),
        python=_python(_mapping(answer.get("python"))),
        pythons=tuple(_python(each) for each in _list(answer.get("pythons"))),
        cores=Cores(**_chosen(answer.get("cores"), "online", "usable", "quota")),
        memory=Memory(**_chosen(answer.get("memory"), "total", "available", "limit")),
        folder=_folder(_mapping(answer.get("folder"))),
        temporary=_temporary(_mapping(answer.get("temporary"))),
        docker=_docker(_mapping(answer.get("docker"))),
        gpus=parse_gpus(_mapping(answer.get("gpus"))),
    )


def parse_gpus(report: Mapping[str, Any]) -> Gpus:
    """A report of the far side's `gpus`, for whoever asks for nothing else."""
    return Gpus(
        state=_enum(GpuState, report.get("state"), GpuState.NO_DRIVER if not report else GpuState.FAILED),
        problem=str(report.get("problem") or ""),
        code=report.get("code"),
        driver=report.get("driver"),
        cuda=report.get("cuda"),
        devices=tuple(_gpu(each) for each in _list(report.get("devices"))),
    )


def _python(row: Mapping[str, Any]) -> PythonFound:
    return PythonFound(str(row.get("path") or ""), str(row.get("version") or ""))


def _folder(row: Mapping[str, Any]) -> Folder:
    quota = row.get("quota")
    names = ("file_system", "mount_point", "source", "network", "noexec", "writable")
    return Folder(
        path=str(row.get("path") or ""),
        quota=None if quota is None else Quota(quota["used"], quota["limit"], quota["files"], quota["files_limit"]),
        **_chosen(row, *names, "total", "free", "inodes_total", "inodes_free"),
    )


def _temporary(row: Mapping[str, Any]) -> TemporaryFolder:
    return TemporaryFolder(path=str(row.get("path") or ""), **_chosen(row, "noexec", "writable", "free"))


def _docker(row: Mapping[str, Any]) -> DockerFound:
    return DockerFound(row.get("path"), row.get("version"), str(row.get("problem") or ""))


def _gpu(row: Mapping[str, Any]) -> Gpu:
    capability, processes = row.get("capability"), row.get("processes")
    memory = ("memory_total", "memory_used", "memory_free")
    clocks = ("sm_clock", "sm_clock_max", "memory_clock", "memory_clock_max")
    return Gpu(
        index=int(row["index"]),
        state=_enum(DeviceState, row.get("state"), DeviceState.FAILED),
        problem=str(row.get("problem") or ""),
        capability=None if capability is None else (int(capability[0]), int(capability[1])),
        instances=tuple(
            GpuInstance(index=int(each["index"]), **_chosen(each, "name", "uuid", *memory))
            for each in _list(row.get("instances"))
        ),
        processes=None if processes is None else tuple(_process(each) for each in _list(processes)),
        **_chosen(row, "name", "uuid", "pci", "mig", *memory, *clocks),
    )


def _process(row: Mapping[str, Any]) -> GpuProcess:
    return GpuProcess(int(row["pid"]), row.get("memory"), str(row.get("kind") or "compute"))


def _enum(kind: Any, value: Any, otherwise: Any) -> Any:
    return kind(value) if value in {each.value for each in kind} else otherwise


def _chosen(row: Any, *names: str) -> dict[str, Any]:
    found = _mapping(row)
    return {name: found.get(name) for name in names}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Mapping[str, Any]]:
    return value if isinstance(value, list) else []
