"""What is known about a run and the GPUs before its script starts, and when it has ended: what a verdict is made from,
beside the samples. Pure; `as_json` and `parse` are the file `gpu.json` of the run."""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.environments.build_findings import BuildFinding
from holdfast.farside.gpu import request as requests
from holdfast.farside.gpu.devices import NAMED, OK, GpuDevice
from holdfast.farside.gpu.request import GpuRequest

FORMAT = 1
_MIG = "MIG-"
_Reader = Callable[[Any], Any]
_NUMBER = re.compile(r"\s*\+?(\d{1,9})(?!\d)")


class GpuFacts(NamedTuple):
    """`driver_state` is that of a report (`machine.gpus`), with `problem` in the driver's words. `container` None: the
    script sees the machine; else how its container gets GPUs, empty for not at all. `refuses`: the user wrote that none
    are wanted. `leased` are UUIDs; `visible` is CUDA_VISIBLE_DEVICES as the script gets it. `findings` and `frameworks`
    are those of its environment; `file` is where the target is described. `has_machine_pids`: processes have the
    numbers here that the driver gives them, and not those of a container."""

    request: GpuRequest
    driver_state: str
    problem: str
    driver: Optional[str]
    cuda: Optional[str]
    devices: Tuple[GpuDevice, ...]
    container: Optional[str]
    refuses: bool
    leased: Tuple[str, ...]
    visible: Optional[str]
    findings: Tuple[BuildFinding, ...]
    frameworks: Tuple[str, ...]
    file: str
    has_machine_pids: bool = False

    @property
    def is_interested(self) -> bool:
        """The user did not ask for a GPU, but something is installed that would use one."""
        return bool(self.frameworks) and not self.refuses

    @property
    def is_meant(self) -> bool:
        return self.request.asked or self.is_interested

    def leases(self, device: GpuDevice) -> bool:
        """Whether the run has leased it. Which device an instance of MIG is part of is not known here: it may be any
        that is cut."""
        return device.uuid in self.leased or (device.mig and any(each.startswith(_MIG) for each in self.leased))


class Left(NamedTuple):
    """A process of the run that holds memory of a GPU after the end."""

    pid: int
    name: str
    uuid: str
    memory: Optional[int]


class End(NamedTuple):
    """How the script ended. `started` None: it never ran. `said` are the reasons that its output names; `is_stalled`:
    the driver had not answered the sampler for a while; `is_stopped`: the run was canceled, or told to stop,
    before its script started."""

    started: Optional[float]
    ended: float
    code: Optional[int]
    signal: Optional[int]
    said: Tuple[str, ...]
    left: Tuple[Left, ...]
    is_stalled: bool
    is_stopped: bool = False

    @property
    def has_failed(self) -> bool:
        return self.code not in (None, 0) or self.signal is not None

    @property
    def is_known(self) -> bool:
        """Whether it is known that the script ended."""
        return self.code is not None or self.signal is not None


NOTHING = GpuFacts(GpuRequest(), "", "", None, None, (), None, False, (), None, (), (), "")
"""Of a run of which nothing is known."""


def seen(facts: GpuFacts) -> Tuple[GpuDevice, ...]:
    """The devices that the script can see, of those that work: what the container gives it, what is leased, and what
    CUDA_VISIBLE_DEVICES leaves of them."""
    if facts.container == "":
        return ()
    there = [each for each in facts.devices if each.state in (OK, NAMED)]
    if facts.container is not None and facts.leased:
        there = [each for each in there if facts.leases(each)]
    return tuple(there if facts.visible is None else _chosen(facts.visible, there))


def is_hidden(facts: GpuFacts) -> bool:
    """Whether CUDA_VISIBLE_DEVICES leaves the script none of the devices that it would have."""
    if facts.visible is None or not any(each.state == OK for each in facts.devices):
        return False
    return not seen(facts._replace(container=facts.container or None))


def as_json(facts: GpuFacts) -> Dict[str, Any]:
    devices = [{name: getattr(each, name) for name in _DEVICE} for each in facts.devices]
    return dict(facts._asdict(), request=facts.request.as_json(), devices=devices, format=FORMAT)


def parse(found: Any) -> GpuFacts:
    """ValueError where it is not what `as_json` makes. Unknown keys are left out."""
    try:
        return GpuFacts(**_read(_FACTS, found))
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise ValueError("these are no facts about GPUs: %s" % error)


def _chosen(visible: str, devices: Sequence[GpuDevice]) -> List[GpuDevice]:
    """As CUDA reads it: the list ends at the first entry that is no device. A number counts the devices, a UUID may be
    cut short as long as only one begins so."""
    chosen: List[GpuDevice] = []
    for entry in visible.split(","):
        named = _named(entry.strip(), devices)
        if not named:
            break
        chosen += [each for each in named if each not in chosen]
    return chosen


def _named(entry: str, devices: Sequence[GpuDevice]) -> List[GpuDevice]:
    number = _NUMBER.match(entry)
    if number:
        return list(devices[int(number.group(1)) :][:1])
    if entry.startswith(_MIG):
        cut = [each for each in devices if each.mig]
        old = [each for each in cut if entry[len(_MIG) :].split("/")[0] == each.uuid]  # MIG-GPU-<uuid>/1/0
        return old or cut
    if not entry.startswith("GPU-"):
        return []
    beginning = [each for each in devices if each.uuid.startswith(entry)]
    return beginning if len(beginning) == 1 else []


def _read(readers: Dict[str, _Reader], found: Any) -> Dict[str, Any]:
    return {name: read(found[name]) for name, read in readers.items() if name in found}


def _maybe(read: _Reader) -> _Reader:
    return lambda found: None if found is None else read(found)


def _several(read: _Reader) -> _Reader:
    def read_all(found: Any) -> Tuple[Any, ...]:
        if not isinstance(found, (list, tuple)):
            raise TypeError("a list was expected")
        return tuple(read(each) for each in found)

    return read_all


_DEVICE: Dict[str, _Reader] = {
    "number": int,
    "uuid": str,
    "name": str,
    "memory_total": _maybe(int),
    "memory_free": _maybe(int),
    "state": str,
    "mig": bool,
    "strangers": _several(int),
}
_FACTS: Dict[str, _Reader] = {
    "request": requests.parse,
    "driver_state": str,
    "problem": str,
    "driver": _maybe(str),
    "cuda": _maybe(str),
    "devices": _several(lambda found: GpuDevice(**_read(_DEVICE, found))),
    "container": _maybe(str),
    "refuses": bool,
    "leased": _several(str),
    "visible": _maybe(str),
    "findings": _several(lambda found: BuildFinding(*_several(str)(found))),
    "frameworks": _several(str),
    "file": str,
    "has_machine_pids": bool,
}
