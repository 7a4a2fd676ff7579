"""A simulated NVIDIA driver library, for every suite that needs GPUs where there are none.

    gpus = Simulated(tmp_path, [Device(), Device(name="NVIDIA A100-SXM4-40GB", capability=(8, 0))])
    run(..., env=gpus.environment)              # HOLDFAST_NVML, LD_LIBRARY_PATH and the state file's place

    gpus.devices[1].lost = True                 # while a process runs: every call reads the state anew
    gpus.write()

What can be said of the machine:

- `Device(processes=[Process(pid=4242, memory=GIB)])` is a stranger's process; its memory and utilisation count towards
  the device's. `Process(pid, while_alive=True)` disappears with the process. `occupying(device=0)` is text for a
  script, which then appears on the device by itself, under its own pid, until it ends.
- `Device(unsupported={"nvmlDeviceGetClockInfo"})` answers NOT_SUPPORTED, `errors={"nvmlDeviceGetName": UNKNOWN}` any
  code.
- `Device(stalls={"nvmlDeviceGetMemoryInfo"})` never returns from that call; `Simulated(stalls={"nvmlInit_v2"})` does so
  for calls of no device. `"*"` stands for every function.
- `Device(lost=True)` answers GPU_IS_LOST to everything.
- `Simulated(init=DRIVER_NOT_LOADED)` or LIB_RM_VERSION_MISMATCH: the library is there and cannot start.
- `Device(mig=True, instances=[Instance(), Instance()])`; `mig=None` is a device that knows no MIG. `closed=True`: the
  processes of all instances together are for the privileged only, those of each are not.
- `gpus.calls()` lists the calls that were made, as (pid, function); `gpus.uuids()` are those of the devices. No other
  simulated machine has the same: GPUs are leased by them, and tests run beside each other.

The C library is built once per content, into `.cache/kit` of the repository, and needs gcc.

The state file has lines of words; texts go on to the end of the line:

    driver 535.104.05 | nvml 12.535.104.05 | cuda 12020 | init CODE | log 1
    error FUNCTION CODE | stall FUNCTION
    device N KEY VALUE…       name uuid pci serial total reserved capability minor clock max_clock utilization
                              temperature power energy persistence lost mig closed max_mig error stall
    device N process PID compute|graphics|mps MEMORY SM% MEMORY% INSTANCE|-1 WHILE_ALIVE
    device N instance I KEY VALUE    name uuid total reserved slices
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, GPU_IS_LOST, LIB_RM_VERSION_MISMATCH, UNKNOWN = 3, 4, 9, 15, 18, 999
GIB = 1 << 30
_SOURCE = Path(__file__).with_name("nvml.c")
_CACHE = Path(__file__).resolve().parents[3] / ".cache" / "kit"
_NAME = "libnvidia-ml.so.1"


@dataclass
class Process:
    """A process on a device. `memory` None: the driver does not know. `instance`: the MIG instance that it is on."""

    pid: int
    memory: int | None = 256 << 20
    utilization: int = 0
    memory_utilization: int = 0
    kind: str = "compute"
    instance: int | None = None
    while_alive: bool = False


@dataclass
class Instance:
    """A MIG instance; the defaults of name and UUID are made from the device's and its number."""

    name: str = ""
    uuid: str = ""
    total: int = 5 * GIB
    reserved: int = 13 << 20
    slices: int = 1


@dataclass
class Device:
    """One GPU, by default an idle Tesla K80. Clocks are MHz: graphics, SM, memory, video."""

    name: str = "Tesla K80"
    uuid: str = ""
    pci: str = ""
    total: int = 11_996_954_624
    reserved: int = 64 << 20
    capability: tuple[int, int] = (3, 7)
    clock: tuple[int, int, int, int] = (324, 324, 324, 405)
    max_clock: tuple[int, int, int, int] = (875, 875, 2505, 540)
    utilization: int = 0
    memory_utilization: int = 0
    temperature: int = 35
    power: int = 26_000
    power_limit: int = 149_000
    energy: int = 0
    persistence: bool = True
    lost: bool = False
    mig: bool | None = None
    closed: bool = False
    instances: list[Instance] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    unsupported: set[str] = field(default_factory=set)
    errors: dict[str, int] = field(default_factory=dict)
    stalls: set[str] = field(default_factory=set)


class Simulated:
    """A machine with these devices. The state is written at once, and again by `write()` after a change."""

    def __init__(
        self, folder: Path, devices: Sequence[Device] = (), *, init: int = 0, stalls: Sequence[str] = ()
    ) -> None:
        self.devices = list(devices)
        self.driver, self.nvml, self.cuda = "535.104.05", "12.535.104.05", 12020
        self.init = init
        self.stalls = set(stalls)
        self.errors: dict[str, int] = {}
        self.library = build()
        folder.mkdir(parents=True, exist_ok=True)
        self.state = folder / "nvml-state"
        self.write()

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that let a process see these devices: one for Holdfast, the loader's for everything else."""
        return {
            "SIMULATED_NVML_STATE": str(self.state),
            "HOLDFAST_NVML": str(self.library),
            "LD_LIBRARY_PATH": str(self.library.parent),
        }

    def write(self) -> None:
        """Atomic: a process that reads meanwhile sees the old state."""
        new = self.state.with_name(self.state.name + ".new")
        new.write_text("\n".join(self._lines()) + "\n")
        new.replace(self.state)

    def uuids(self) -> list[str]:
        return [device.uuid or self._uuid("GPU", number, 0) for number, device in enumerate(self.devices)]

    def calls(self) -> list[tuple[int, str]]:
        """(pid, function) of every call until now."""
        log = Path(f"{self.state}.calls")
        lines = log.read_text().splitlines() if log.exists() else []
        return [(int(pid), function) for pid, function in (line.split() for line in lines)]

    def _lines(self) -> Iterator[str]:
        yield f"driver {self.driver}"
        yield f"nvml {self.nvml}"
        yield f"cuda {self.cuda}"
        yield f"init {self.init}"
        yield "log 1"
        yield from (f"error {function} {code}" for function, code in self.errors.items())
        yield from (f"stall {function}" for function in sorted(self.stalls))
        for number, device in enumerate(self.devices):
            yield f"device {number} uuid {self.uuids()[number]}"
            yield from (f"device {number} {line}" for line in _device_lines(number, device))
            for place, instance in enumerate(device.instances):
                uuid = instance.uuid or self._uuid("MIG", number, place)
                yield f"device {number} instance {place} uuid {uuid}"

    def _uuid(self, kind: str, number: int, place: int) -> str:
        machine = hashlib.sha256(os.fsencode(self.state)).hexdigest()[:12]
        return f"{kind}-{number:08x}-{place:04x}-4000-8000-{machine}"


def occupying(
    device: int = 0,
    memory: int = 256 << 20,
    utilization: int = 50,
    instance: int | None = None,
    stays: bool = False,
) -> str:
    """Python for the top of a script: from there on its process is on the device, until it ends. `stays`: even after
    that, like a driver that does not release memory."""
    place = -1 if instance is None else instance
    words = f"{memory} {utilization} {utilization // 2} {place} {int(not stays)}"
    return (
        "import os as _os\n"
        "with open(_os.environ['SIMULATED_NVML_STATE'] + '.processes', 'a') as _state:\n"
        f"    _state.write('device {device} process %d compute {words}\\n' % _os.getpid())\n"
    )


def build() -> Path:
    """The library's file. Several processes may build at once: each has its own file until it is complete."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    final = _CACHE / f"nvml-{digest}" / _NAME
    if final.exists():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    new = final.with_name(f".{os.getpid()}-{os.urandom(4).hex()}-{_NAME}")
    argv = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{_NAME}"]
    done = subprocess.run([*argv, "-o", str(new), str(_SOURCE), "-lpthread"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    new.replace(final)
    return final


def _device_lines(number: int, device: Device) -> Iterator[str]:
    yield f"name {device.name}"
    yield f"pci {device.pci or f'0000:{number + 6:02x}:00.0'}"
    yield f"total {device.total}"
    yield f"reserved {device.reserved}"
    yield f"capability {device.capability[0]} {device.capability[1]}"
    yield f"minor {number}"
    yield "clock {} {} {} {}".format(*device.clock)
    yield "max_clock {} {} {} {}".format(*device.max_clock)
    yield f"utilization {device.utilization} {device.memory_utilization}"
    yield f"temperature {device.temperature}"
    yield f"power {device.power} {device.power_limit}"
    yield f"energy {device.energy}"
    yield f"persistence {int(device.persistence)}"
    yield f"lost {int(device.lost)}"
    yield f"mig {-1 if device.mig is None else int(device.mig)}"
    yield f"closed {int(device.closed)}"
    yield "max_mig 7"
    for function, code in {**dict.fromkeys(sorted(device.unsupported), NOT_SUPPORTED), **device.errors}.items():
        yield f"error {function} {code}"
    yield from (f"stall {function}" for function in sorted(device.stalls))
    for place, instance in enumerate(device.instances):
        yield from (f"instance {place} {line}" for line in _instance_lines(device, instance))
    for process in device.processes:
        where = -1 if process.instance is None else process.instance
        used = f"{process.memory or 0} {process.utilization} {process.memory_utilization}"
        yield f"process {process.pid} {process.kind} {used} {where} {int(process.while_alive)}"


def _instance_lines(device: Device, instance: Instance) -> Iterator[str]:
    yield f"name {instance.name or f'{device.name} MIG {instance.slices}g.{instance.total // GIB}gb'}"
    yield f"total {instance.total}"
    yield f"reserved {instance.reserved}"
    yield f"slices {instance.slices}"
