"""What is known about a run and the GPUs before its script starts, and when it has ended: what a verdict is made from,
beside the samples. Pure; `as_json` and `parse` are the file `gpu.json` of the run."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.environments.build_findings import BuildFinding
from holdfast.farside.gpu import request as requests
from holdfast.farside.gpu.request import GpuRequest

OK, NAMED = "ok", "named"
NAMELESS = "unknown"
"""Instead of the name of a device that does not say it."""
FORMAT = 1
_MIG = "MIG-"
_NUMBER = re.compile(r"\s*\+?(\d{1,9})(?!\d)")


class DeviceFacts(NamedTuple):
    """As the driver said at the start. `state` is `ok`, `lost` or `failed`, or `named` where nothing more is known of
    it than its name."""

    number: int
    uuid: str
    name: str
    memory_total: Optional[int]
    memory_free: Optional[int]
    state: str
    mig: bool
    strangers: Tuple[int, ...]
    """Compute processes on it before the run had any."""


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
    devices: Tuple[DeviceFacts, ...]
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

    def leases(self, uuid: str, mig: bool) -> bool:
        """Whether the run has leased this device. Which device an instance of MIG is part of is not known here: it may
        be any that is cut."""
        return uuid in self.leased or (mig and any(each.startswith(_MIG) for each in self.leased))


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


def seen(facts: GpuFacts) -> Tuple[DeviceFacts, ...]:
    """The devices that the script can see, of those that work: what the container gives it, what is leased, and what
    CUDA_VISIBLE_DEVICES leaves of them."""
    if facts.container == "":
        return ()
    there = [each for each in facts.devices if each.state in (OK, NAMED)]
    if facts.container is not None and facts.leased:
        there = [each for each in there if facts.leases(each.uuid, each.mig)]
    return tuple(there if facts.visible is None else _chosen(facts.visible, there))


def is_hidden(facts: GpuFacts) -> bool:
    """Whether CUDA_VISIBLE_DEVICES leaves the script none of the devices that it would have."""
    if facts.visible is None or not any(each.state == OK for each in facts.devices):
        return False
    return not seen(facts._replace(container=facts.container or None))


def as_json(facts: GpuFacts) -> Dict[str, Any]:
    found = dict(facts._asdict(), format=FORMAT)
    found["request"] = facts.request.as_json()
    found["devices"] = [dict(each._asdict(), strangers=list(each.strangers)) for each in facts.devices]
    found["findings"] = [list(each) for each in facts.findings]
    found["leased"], found["frameworks"] = list(facts.leased), list(facts.frameworks)
    return found


def parse(found: Any) -> GpuFacts:
    """ValueError where it is not what `as_json` makes. Unknown keys are left out."""
    try:
        return GpuFacts(
            request=requests.parse(found["request"]),
            driver_state=str(found["driver_state"]),
            problem=str(found["problem"]),
            driver=_text(found["driver"]),
            cuda=_text(found["cuda"]),
            devices=tuple(_device(each) for each in found["devices"]),
            container=_text(found["container"]),
            refuses=bool(found["refuses"]),
            leased=_texts(found["leased"]),
            visible=_text(found["visible"]),
            findings=tuple(BuildFinding(*_texts(each)) for each in found["findings"]),
            frameworks=_texts(found["frameworks"]),
            file=str(found["file"]),
            has_machine_pids=bool(found.get("has_machine_pids", False)),
        )
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise ValueError("these are no facts about GPUs: %s" % error)


def _chosen(visible: str, devices: Sequence[DeviceFacts]) -> List[DeviceFacts]:
    """As CUDA reads it: the list ends at the first entry that is no device. A number counts the devices, a UUID may be
    cut short as long as only one begins so."""
    chosen: List[DeviceFacts] = []
    for entry in visible.split(","):
        named = _named(entry.strip(), devices)
        if not named:
            break
        chosen += [each for each in named if each not in chosen]
    return chosen


def _named(entry: str, devices: Sequence[DeviceFacts]) -> List[DeviceFacts]:
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


def _device(found: Dict[str, Any]) -> DeviceFacts:
    return DeviceFacts(
        number=int(found["number"]),
        uuid=str(found["uuid"]),
        name=str(found["name"]),
        memory_total=_integer(found["memory_total"]),
        memory_free=_integer(found["memory_free"]),
        state=str(found["state"]),
        mig=bool(found["mig"]),
        strangers=tuple(int(each) for each in found["strangers"]),
    )


def _texts(found: Any) -> Tuple[str, ...]:
    if not isinstance(found, (list, tuple)):
        raise TypeError("a list was expected")
    return tuple(str(each) for each in found)


def _text(found: Any) -> Optional[str]:
    return None if found is None else str(found)


def _integer(found: Any) -> Optional[int]:
    return None if found is None else int(found)
