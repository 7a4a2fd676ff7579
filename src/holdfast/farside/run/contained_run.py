"""What a supervisor does for a command that runs in a container: the image, the start, and how it ended."""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.environments.workshop import Supervision
from holdfast.farside.run.bare_run import BareRun, Ending
from holdfast.farside.system.children import Attendant, Exit, Stop
from holdfast.farside.system.layout import Home
from holdfast.farside.system.output import Pump
from holdfast.farside.system.programs import Attended

if TYPE_CHECKING:
    from holdfast.farside.containers.images import InImage
    from holdfast.farside.containers.room import RoomContainer
    from holdfast.farside.environments.build_findings import BuildFinding
    from holdfast.farside.gpu.devices import GpuDevice
    from holdfast.farside.system.bound_plan import RunCommand

REMOVING = 20.0
"""Seconds that a container's removal may wait for a Docker that is being restarted."""


class ContainedRun(BareRun):
    """`bound` is the plan's container with its holes filled. Docker is asked about the image from now on, beside
    everything else."""

    refused_as = "container"
    tells_swept = False  # beside a container there is nothing of the user's

    def __init__(self, home: Home, supervision: Supervision, attendant: Attendant, bound: Dict[str, Any]) -> None:
        super().__init__(home, supervision, attendant)
        self._is_ending = False
        docker = DockerClient(str(bound["program"]), attended=Attended(self._wait_for_docker, attendant.exits))
        docker.foresee(["image", "inspect", str(bound["image"])])
        from holdfast.farside.containers.contained import Contained  # takes as long as Docker does for its answer

        self._contained: Contained = Contained(home, supervision.folder, bound, docker)

    @property
    def platform(self) -> str:
        return self._contained.image.platform

    def find(self, plan: Dict[str, Any], work: str, require_driver: Callable[[], None]) -> Dict[str, str]:
        """Find the image, fetch it if need be."""
        require_driver()
        self._supervision.tell("phase", name="container", text="looking for the image")
        self._contained.find(self._supervision)
        facts = self._contained.facts(plan.get("python"))
        if plan["environment"] is None and plan["command"] is not None:
            self._contained.require_python(facts["python"])
        return facts

    def room(self) -> "RoomContainer":
        return self._contained.room()

    def place(self) -> "InImage":
        return self._contained.place()

    @property
    def variables(self) -> Dict[str, str]:
        return self._contained.image.environment

    def tell_python(self, python: str) -> bool:
        return False  # the launcher looks at it

    def give(self, units: Optional[Sequence["GpuDevice"]]) -> str:
        if units is not None:
            self._contained.devices = tuple(units)
        return self._contained.gpu_way()

    def learned(self) -> Tuple[List["BuildFinding"], List[str]]:
        """By the launcher, in the image's own Python."""
        said = [event for event in self._contained.said if event["e"] == "frameworks"]
        if not said:
            return [], []
        from holdfast.farside.environments.build_findings import BuildFinding

        rows = [each for event in said for each in event["findings"] if len(each) == len(BuildFinding._fields)]
        findings = [BuildFinding(*each) for each in rows]
        return findings, [str(name) for event in said for name in event["names"]]

    def start(self, command: "RunCommand", pump: Pump, output: int) -> int:
        pid = self._contained.start(command)
        self._attendant.expect(pid)
        while True:
            for event in self._contained.hear():
                if self._contained.is_started(event, self._supervision.tell):
                    return pid
            self._supervision.check_stop()
            self._contained.require_keeper(pid in self._attendant.exits)
            self._attendant.wait(None, pump, self._contained.pipes())

    def finish(self, result: Exit, pump: Pump, stop: Optional[Stop]) -> Tuple[Exit, Optional[Ending]]:
        from holdfast.farside.containers.outcome import finish

        self._is_ending = True
        outcome = finish(self._contained, lambda seconds: self._attendant.wait(seconds, pump), stop is not None)
        if outcome.swept:
            self._supervision.tell("swept", processes=outcome.swept, count=outcome.total)
        for sentence in outcome.notes:
            self._supervision.tell("note", text=sentence)
        return outcome.exit, outcome.ending

    def monitors(self) -> Set[int]:
        from holdfast.farside.containers.removal import monitors

        return monitors(self._supervision.folder)

    def end(self) -> None:
        self._is_ending = True
        self._contained.end()

    def remove(self) -> None:
        self._contained.remove(REMOVING)
        if self._attendant.stop is not None:
            from holdfast.farside.containers.removal import remove_late

            remove_late(self._supervision.folder)
        self._contained.drop_bytecode()

    def _wait_for_docker(self, seconds: float, pipes: Sequence[int]) -> None:
        self._attendant.wait(seconds, None, pipes)
        if not self._is_ending:
            self._supervision.check_stop()
