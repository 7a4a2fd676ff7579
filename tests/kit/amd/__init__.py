"""A simulated `amdsmi`, the Python module of AMD's driver, for suites that need such GPUs where there are none.

    gpus = Simulated(tmp_path, [Device(processes=[Process(pid=4242, memory=GIB)])])
    run(..., env=gpus.environment)              # HOLDFAST_AMDSMI names the folder with the module

    gpus.devices[0].fails = ["*"]               # while a process runs: every call reads the state anew
    gpus.write()

The module beside this file has the names, keys and units that AMD documents for those of its functions that are used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

GIB = 1 << 30


@dataclass
class Process:
    """A process on a device; memory in bytes."""

    pid: int
    memory: int = 256 << 20


@dataclass
class Device:
    """`fails` are functions that raise, `*` for all. `edge` None: there is no such sensor."""

    name: str = "AMD Instinct MI210"
    uuid: str = "8aff740f-0000-1000-80d8-c14ed0f57ea0"
    total: int = 64 * GIB
    used: int = 12 << 20
    activity: int | str = 0
    power: int = 41
    edge: int | None = None
    junction: int = 38
    processes: list[Process] = field(default_factory=list)
    fails: list[str] = field(default_factory=list)


class Simulated:
    """A machine with these devices. `init` is the error that keeps the library from starting. `has_handles`: the
    process list has handles only, as before ROCm 6.1."""

    def __init__(
        self, folder: Path, devices: Sequence[Device] = (), *, init: str = "", has_handles: bool = False
    ) -> None:
        self.devices, self.init, self.has_handles = list(devices), init, has_handles
        folder.mkdir(parents=True, exist_ok=True)
        self.state = folder / "amdsmi.json"
        self.write()

    @property
    def environment(self) -> Mapping[str, str]:
        return {"HOLDFAST_AMDSMI": str(Path(__file__).parent), "SIMULATED_AMDSMI_STATE": str(self.state)}

    def write(self) -> None:
        """Whole or not at all."""
        found = {"devices": [asdict(each) for each in self.devices], "init": self.init, "handles": self.has_handles}
        new = self.state.with_name("amdsmi.json.new")
        new.write_text(json.dumps(found))
        new.replace(self.state)

    def calls(self) -> list[str]:
        """The functions that were called, in order."""
        log = Path(f"{self.state}.calls")
        return log.read_text().split() if log.exists() else []
