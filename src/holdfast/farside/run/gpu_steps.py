"""The steps of a run that are about GPUs, in an order that their types enforce: each is made by the one before it."""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set

from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.machine import gpus
from holdfast.farside.run.gpu_watch import GpuWatch
from holdfast.farside.system.children import Attendant

if TYPE_CHECKING:
    from holdfast.farside.environments.build_findings import BuildFinding
    from holdfast.farside.environments.workshop import Supervision
    from holdfast.farside.gpu.watch.watchdog import GpuWatchdog
    from holdfast.farside.system.children import Exit


class GpuStep:
    """What can be asked and done at every step."""

    def __init__(self, watch: GpuWatch) -> None:
        self._watch = watch

    @property
    def report(self) -> gpus.Report:
        return self._watch.report

    @property
    def request(self) -> GpuRequest:
        return self._watch.request

    @property
    def is_given(self) -> bool:
        """Whether the script is to see GPUs at all."""
        return self._watch.is_given

    def spared(self) -> Set[int]:
        """Processes that are not the script's."""
        return self._watch.spared()

    def stop_asking(self) -> None:
        """Nothing waits for the driver any more."""
        self._watch.stop_asking()

    def finish(self, ended: Optional[float], result: Optional["Exit"]) -> None:
        """End what of the run is still on a device, and say what came of it. `ended` None: the script never ran."""
        self._watch.finish(ended, result)


class DriverAsked(GpuStep):
    """Begins to ask the driver when it is made. `given` is where leases are handed to the guardian, if there can be
    any."""

    def __init__(self, plan: Dict[str, Any], supervision: "Supervision", attendant: Attendant, given: Any) -> None:
        super().__init__(GpuWatch(plan, supervision, attendant, given))

    def require_driver(self) -> None:
        """Before an image is fetched for a run that must have a GPU on a machine that has none."""
        self._watch.require_driver()

    def hear(self, wait: Callable[[float], None]) -> "DriverHeard":
        """What the driver says, which was asked when this was made."""
        self._watch.hear(wait)
        return DriverHeard(self._watch)


class DriverHeard(GpuStep):
    def look_at(self, prefix: str, python: str, platform: str = "") -> None:
        """Read what is installed in the script's environment, and say what speaks against it."""
        self._watch.look_at(prefix, python, platform)

    def lease(self) -> "GpusLeased":
        """Wait until the run has the GPUs that it asks for."""
        self._watch.lease()
        return GpusLeased(self._watch)


class GpusLeased(GpuStep):
    def show(self, given: Dict[str, str], image: Dict[str, str]) -> "GpusShown":
        """`given` are the plan's variables, which are obeyed and get those of the lease; `image` are those that a
        container has by itself."""
        given.update(self._watch.variables(given, image))
        return GpusShown(self._watch)


class GpusShown(GpuStep):
    def units(self) -> Optional[List[Any]]:
        """What the container gets; None: all that there are."""
        return self._watch.units()

    def check(self, way: str) -> "GpusChecked":
        """Say what keeps the script from using a GPU; Refused where it must have one. `way` is how its container gets
        them."""
        self._watch.check(way)
        return GpusChecked(self._watch)


class GpusChecked(GpuStep):
    def header(self) -> bytes:
        """The lines about the devices that the script gets, for its output."""
        return self._watch.header()

    def watch(self) -> "GpusWatched":
        """From now on. Nothing of it keeps the script from starting."""
        self._watch.start()
        return GpusWatched(self._watch)


class GpusWatched(GpuStep):
    def learn(self, findings: Sequence["BuildFinding"], frameworks: Sequence[str]) -> None:
        """What was found when the script started."""
        self._watch.learn(findings, frameworks)

    def watchdog(self) -> Optional["GpuWatchdog"]:
        """When the script has started."""
        return self._watch.watchdog()
