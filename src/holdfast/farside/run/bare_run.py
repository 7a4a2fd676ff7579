"""What a supervisor does for a command that sees the machine as its user does. `contained_run.py`, for one in a
container, overrides all of it."""

import os
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.environments.user_python import beside, find_python, path_of
from holdfast.farside.environments.workshop import Room, Supervision
from holdfast.farside.run.run_group import NAME, RunGroup
from holdfast.farside.system.bound_plan import holes
from holdfast.farside.system.children import Attendant, Exit, Stop, inherited_environment, spawn
from holdfast.farside.system.layout import Home
from holdfast.farside.system.output import Pump

if TYPE_CHECKING:
    from holdfast.farside.environments.build_findings import BuildFinding
    from holdfast.farside.environments.place import BuildPlace
    from holdfast.farside.gpu.devices import GpuDevice
    from holdfast.farside.system.bound_plan import RunCommand

Ending = Dict[str, Any]
_KILLED = re.compile(r"[Kk]illed process (\d+)\b")
_MOST_RECORDS = 1 << 20


class BareRun:
    """`refused_as`: the reason of a run that ends because something here was refused. `tells_swept`: processes beside
    the command are the user's."""

    refused_as = "cannot-start"
    tells_swept = True

    def __init__(self, home: Home, supervision: Supervision, attendant: Attendant) -> None:
        self._home, self._supervision, self._attendant = home, supervision, attendant
        self._witness: Optional[Witness] = None

    @property
    def platform(self) -> str:
        """The platform that the command runs on; empty if it is this machine's."""
        return ""

    @property
    def variables(self) -> Dict[str, str]:
        """Variables that the place sets itself, where they differ from this process's."""
        return {}

    def find(self, plan: Dict[str, Any], work: str, require_driver: Callable[[], None]) -> Dict[str, str]:
        """What the plan's holes are at this place, once the files are there: the Python may be one of them, and is
        looked for only where the plan leaves it open. `require_driver` is called before anything is fetched."""
        if "python" not in holes([plan["command"], plan["environment"]]):
            return {"python": ""}
        python = find_python(plan.get("python"), work)
        return {"python": python, "path": path_of(python, plan.get("python"), os.environ.get("PATH", os.defpath))}

    def room(self) -> Room:
        """Where the environment is built."""
        return Room("/")

    def place(self) -> "BuildPlace":
        """The place that the environment is built for."""
        from holdfast.farside.environments.place import BuildPlace

        return BuildPlace(self._home)

    def tell_python(self, python: str) -> bool:
        """Of a command without an environment of ours. False: that is told when it starts."""
        version, packages = beside(python)
        self._supervision.tell("environment", id="", python=version, packages=packages, built=False, seconds=0)
        return True

    def give(self, units: Optional[Sequence["GpuDevice"]]) -> str:
        """Set the GPUs that the command gets, None for all. Returns how a container gets them; empty without one."""
        return ""

    def start(self, command: "RunCommand", pump: Pump, output: int) -> int:
        """Returns when the command runs, with the pid of the process that stands for it."""
        self._witness = Witness()
        environment = dict(inherited_environment(), **command.environment)
        pid = spawn(command.argv, environment, command.directory, output)
        self._attendant.expect(pid)
        return pid

    def learned(self) -> Tuple[List["BuildFinding"], List[str]]:
        """What was found at the start, and the frameworks that are there."""
        return [], []

    def finish(self, result: Exit, pump: Pump, stop: Optional[Stop]) -> Tuple[Exit, Optional[Ending]]:
        """The command's own exit, and how the run ended if the exit does not tell."""
        return result, None

    def killed_for_memory(self, pid: int) -> Tuple[bool, str]:
        """Whether the kernel's log proves it, and a sentence for the record."""
        return self._witness.verdict(pid) if self._witness is not None else (False, "")

    def monitors(self) -> Set[int]:
        """Processes below the supervisor that are a container engine's, and end with the container."""
        return set()

    def end(self) -> None:
        """Nothing of the command runs when this returns."""

    def remove(self) -> None:
        """What is left, when all is told: the run's end does not wait for it."""


class Witness:
    """Whether a process was killed because memory ran out: only the kernel's own accounting is proof. Made before the
    script starts; asked after it was killed."""

    def __init__(self) -> None:
        self._counter = _counter_file()
        self._before = _count(self._counter)
        self._log = _kernel_log()

    def verdict(self, pid: int) -> Tuple[bool, str]:
        """Whether it is proven that the kernel ended `pid` for memory, and a sentence for the record."""
        if self._log is not None and pid in _killed_since(self._log):
            return True, "The kernel's log names the process."
        rose = (_count(self._counter) or 0) - (self._before or 0)
        if self._before is None or rose <= 0:
            return False, ""
        if self._alone():
            return True, "The kernel counted it in the run's control group."
        return (
            False,
            "The kernel ended a process for memory in the same control group meanwhile; which one is not known.",
        )

    def close(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def _alone(self) -> bool:
        """Nothing but this process and its guardian is left in the control group, so the victim was the run's."""
        members = RunGroup(os.path.dirname(self._counter or "")).members()
        return bool(members) and members <= {os.getpid(), os.getppid()}


def _counter_file() -> Optional[str]:
    """`memory.events` (cgroup v2) or `memory.oom_control` (v1) of this process's group."""
    try:
        with open("/proc/self/cgroup") as source:
            lines = source.read().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            above = path.split("/" + NAME)[0]  # the run's own counts nothing
            candidate = os.path.join("/sys/fs/cgroup" + above.rstrip("/"), "memory.events")
        elif "memory" in controllers.split(","):
            candidate = os.path.join("/sys/fs/cgroup/memory" + path.rstrip("/"), "memory.oom_control")
        else:
            continue
        if _count(candidate) is not None:
            return candidate
    return None


def _count(path: Optional[str]) -> Optional[int]:
    try:
        with open(path or "") as source:
            for line in source:
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
    except (OSError, ValueError):
        pass
    return None


def _kernel_log() -> Optional[int]:
    """The kernel's log from now on, where this user may read it."""
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(descriptor, 0, os.SEEK_END)
        return descriptor
    except OSError:
        return None


def _killed_since(descriptor: int) -> List[int]:
    found = []
    for _ in range(_MOST_RECORDS):
        try:
            record = os.read(descriptor, 8192)
        except BrokenPipeError:
            continue  # older records were overwritten; the next read goes on after the gap
        except OSError:
            break
        if not record:
            break
        match = _KILLED.search(record.decode("utf-8", "replace"))
        if match:
            found.append(int(match.group(1)))
    return found
