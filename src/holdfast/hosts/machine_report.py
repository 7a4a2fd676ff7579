"""What is known of a machine, its Docker and who uses its GPUs, as values: the far side's answers to `facts`, `docker`,
`docker-try` and `gpus`. None is always "not known"."""

from __future__ import annotations

from enum import Enum

from holdfast.frozen import dataclass
from holdfast.hosts.replies import Seconds

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
class MachineFacts:
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


@dataclass(frozen=True)
class Leftover:
    """A container of Holdfast's whose run is over."""

    name: str
    run: str
    state: str


@dataclass(frozen=True)
class DockerReport:
    """`kind` is `docker` or `podman`; `root` is where images lie, with its `free` bytes, None where that is not known;
    `remaps`: users of containers are others on the machine unless one says so. `lingers`: whether programs of `user`
    outlive its logins there, None where that is not known or does not matter."""

    kind: str
    version: str
    system: str
    is_rootless: bool
    remaps: bool
    root: str
    free: int | None
    total: int | None
    leftovers: tuple[Leftover, ...]
    user: str = ""
    lingers: bool | None = None

    @property
    def title(self) -> str:
        return "Podman" if self.kind == "podman" else "Docker"


@dataclass(frozen=True)
class Trial:
    """A container of `image` has written to Holdfast's folder. `gpus` is the way by which it was given the machine's
    GPUs, empty where it was not, and `problem` says why not."""

    image: str
    gpus: str
    problem: str


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
class GpuInstanceInUse:
    """A part of a device that is cut by MIG."""

    uuid: str | None
    name: str | None
    memory_used: int | None
    memory_total: int | None
    lease: Holder | None
    is_used: bool | None = None


@dataclass(frozen=True)
class GpuInUse:
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
    instances: tuple[GpuInstanceInUse, ...]
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
    devices: tuple[GpuInUse, ...]
    queue: tuple[WaitingRun, ...]
