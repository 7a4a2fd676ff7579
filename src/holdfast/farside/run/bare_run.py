"""What a supervisor does for a command that sees the machine as its user does. `contained_run.py`, for one in a
container, overrides all of it."""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.environments.installed import beside, find_python
from holdfast.farside.environments.workshop import Room, Supervision
from holdfast.farside.run.memory import Witness
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
        """Where the command runs, if that is not this machine itself."""
        return ""

    @property
    def variables(self) -> Dict[str, str]:
        """What is set there by itself, if that is not what this process has."""
        return {}

    def find(self, plan: Dict[str, Any], work: str, require_driver: Callable[[], None]) -> Dict[str, str]:
        """What the plan's holes are at this place, once the files are there: the Python may be one of them, and is
        looked for only where the plan leaves it open. `require_driver` is called before anything is fetched."""
        is_open = "python" in holes([plan["command"], plan["environment"]])
        return {"python": find_python(plan.get("python"), work) if is_open else ""}

    def room(self) -> Room:
        """Where the environment is built."""
        return Room("/")

    def place(self) -> "BuildPlace":
        """What the environment is for."""
        from holdfast.farside.environments.place import BuildPlace

        return BuildPlace(self._home)

    def tell_python(self, python: str) -> bool:
        """Of a command without an environment of ours. False: that is told when it starts."""
        version, packages = beside(python)
        self._supervision.tell("environment", id="", python=version, packages=packages, built=False, seconds=0)
        return True

    def give(self, units: Optional[Sequence["GpuDevice"]]) -> str:
        """The GPUs that the command gets, None for all; returns by which way of a container."""
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
        """The command's own exit, and how the run ended where that does not tell it."""
        return result, None

    def killed_for_memory(self, pid: int) -> Tuple[bool, str]:
        """Whether it is proven, and a sentence for the record."""
        return self._witness.verdict(pid) if self._witness is not None else (False, "")

    def monitors(self) -> Set[int]:
        """Processes below the supervisor that are a container engine's, and end with the container."""
        return set()

    def end(self) -> None:
        """Nothing of the command runs when this returns."""

    def remove(self) -> None:
        """What is left, when all is told: the run's end does not wait for it."""
