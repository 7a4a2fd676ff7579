"""What a supervisor does for a run whose script runs in a container: the image, the start, and how it ended."""

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.containers.calling import Attended
from holdfast.farside.containers.docker import Docker
from holdfast.farside.layout import Home
from holdfast.farside.run.children import Attendant, Stop
from holdfast.farside.run.output import Pump
from holdfast.farside.run.signals import Exit

if TYPE_CHECKING:
    from holdfast.farside.containers.contained import Script
    from holdfast.farside.containers.in_image import InImage
    from holdfast.farside.containers.room import Container
    from holdfast.farside.environments.findings import Finding
    from holdfast.farside.environments.workshop import Owner
    from holdfast.farside.gpu.leasing.units import Unit

REMOVING = 20.0
"""Seconds that a container's removal may wait for a Docker that is being restarted."""


class ContainedRun:
    """`bound` is the plan's container with its holes filled, `owner` what the supervisor lends, `attendant` how it
    waits. Docker is asked about the image from now on, beside everything else."""

    def __init__(self, home: Home, bound: Dict[str, Any], owner: "Owner", attendant: Attendant) -> None:
        self._owner, self._attendant = owner, attendant
        self._is_ending = False
        docker = Docker(str(bound["program"]), attended=Attended(self._wait_for_docker, attendant.exits))
        docker.foresee(["image", "inspect", str(bound["image"])])
        from holdfast.farside.containers.contained import Contained  # takes as long as Docker does for its answer

        self._contained: Contained = Contained(home, owner.folder, bound, docker)

    @property
    def platform(self) -> str:
        return self._contained.image.platform

    def look_at_image(self, python: Optional[str], needs_python: bool) -> Dict[str, str]:
        """Find the image, fetch it if need be. Returns what the plan's holes are in it. `python`: the image's own that
        is asked for, and `needs_python` whether the script runs with it."""
        self._owner.tell("phase", name="container", text="looking for the image")
        self._contained.find(self._owner)
        facts = self._contained.facts(python)
        if needs_python:
            self._contained.require_python(facts["python"])
        return facts

    def room(self) -> "Container":
        """Where the environment is built."""
        return self._contained.room()

    def place(self) -> "InImage":
        """What the environment is for."""
        return self._contained.place()

    @property
    def variables(self) -> Dict[str, str]:
        """What the image sets by itself."""
        return self._contained.image.environment

    def give(self, units: Optional[Sequence["Unit"]]) -> str:
        """The GPUs that the container gets, None for all; returns in which way, empty for none."""
        if units is not None:
            from holdfast.farside.containers.options import Gpu

            self._contained.devices = tuple(Gpu(each.cdi, each.uuid) for each in units)
        return self._contained.gpu_way()

    def learned(self) -> Tuple[List["Finding"], List[str]]:
        """What the launcher found in the image's own Python, and the frameworks that are there."""
        said = [event for event in self._contained.said if event["e"] == "frameworks"]
        if not said:
            return [], []
        from holdfast.farside.environments.findings import Finding

        findings = [Finding(*each) for event in said for each in event["findings"]]
        return findings, [str(name) for event in said for name in event["names"]]

    def start(self, script: "Script", pump: Pump) -> int:
        """Returns when the script runs, with the pid of the process that stands for it."""
        pid = self._contained.start(script)
        self._attendant.expect(pid)
        while True:
            for event in self._contained.hear():
                if self._contained.is_started(event, self._owner.tell):
                    return pid
            self._owner.check_stop()
            self._contained.require_keeper(pid in self._attendant.exits)
            self._attendant.wait(None, pump, self._contained.pipes())

    def finish(self, pump: Pump, stop: Optional[Stop]) -> Tuple[Exit, Optional[Dict[str, Any]]]:
        """The script's own exit, and how the run ended where that does not tell it."""
        from holdfast.farside.containers.judging import finish

        self._is_ending = True
        outcome = finish(self._contained, lambda seconds: self._attendant.wait(seconds, pump), stop is not None)
        if outcome.swept:
            self._owner.tell("swept", processes=outcome.swept, count=outcome.total)
        for sentence in outcome.notes:
            self._owner.tell("note", text=sentence)
        return outcome.exit, outcome.ending

    def monitors(self) -> Set[int]:
        """Processes below the supervisor that are the engine's, and end with the container."""
        from holdfast.farside.containers.monitors import monitors

        return monitors(self._owner.folder)

    def end(self) -> None:
        """Nothing runs in it when this returns."""
        self._is_ending = True
        self._contained.end()

    def remove(self) -> None:
        """When all is told: nobody needs to wait for it."""
        self._contained.remove(REMOVING)
        if self._attendant.stop is not None:
            from holdfast.farside.containers.ending import remove_late

            remove_late(self._owner.folder)
        self._contained.drop_bytecode()

    def _wait_for_docker(self, seconds: float, pipes: Sequence[int]) -> None:
        self._attendant.wait(seconds, None, pipes)
        if not self._is_ending:
            self._owner.check_stop()
