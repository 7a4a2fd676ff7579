"""What a supervisor does about GPUs: leases them, checks them, watches them, and says what came of it; `gpu_steps.py`
has the order."""

import json
import os
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.gpu.request import ALL, GpuRequest, parse
from holdfast.farside.machine import gpus
from holdfast.farside.system.children import Attendant, CannotStart, inherited_environment
from holdfast.farside.system.files import write_whole
from holdfast.farside.system.layout import GPU_FACTS, OUTPUT
from holdfast.farside.system.refusal import Refused

if TYPE_CHECKING:
    from holdfast.farside.environments.build_findings import BuildFinding
    from holdfast.farside.environments.workshop import Supervision
    from holdfast.farside.gpu.gpu_facts import GpuFacts, Left
    from holdfast.farside.gpu.lease.leases import Lease
    from holdfast.farside.gpu.watch.sampler_child import Sampling
    from holdfast.farside.gpu.watch.watchdog import GpuWatchdog
    from holdfast.farside.system.children import Exit

REFUSED = "gpu"
"""Of a refusal: the run must have a GPU, and this one would not."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
KFD, AMDSMI_FOLDER = "/dev/kfd", "HOLDFAST_AMDSMI"
"""Where an AMD device that computes is reached; what names AMD's library instead."""
SHORT = 5.0
"""Seconds of a script whose end is not kept waiting by a driver that has not said anything yet."""
PATIENCE, GREAT_PATIENCE = 10.0, 60.0
"""Seconds for a driver that has to wake up before devices can be leased: where the run can go on without a lease, and
where it cannot."""


class GpuWatch:
    """Begins to ask the driver when it is made. `given` is where leases are handed to the guardian, if there can be
    any."""

    def __init__(self, plan: Dict[str, Any], owner: "Supervision", attendant: Attendant, given: Any) -> None:
        self.request: GpuRequest = parse(plan.get("gpu"))
        container = plan.get("container")
        self._run, self._owner, self._attendant, self._given = str(plan["run"]), owner, attendant, given
        self._gives = None if container is None else container["gpus"]
        self._is_bare = container is None
        self._file = "" if container is None else str(container["file"])
        self._environment = inherited_environment()
        self.is_present = gpus.is_present(self._environment)
        self._devices = gpus.DriverQuestion(attendant, self._note if self.is_given else _unsaid)
        self._lease: Optional[Lease] = None
        self._findings: List[BuildFinding] = []
        self._frameworks: List[str] = []
        self._visible: Optional[str] = None
        self._way = ""
        self._sampling: Optional[Sampling] = None
        self._started: Optional[float] = None

    @property
    def report(self) -> gpus.Report:
        return self._devices.report

    @property
    def is_given(self) -> bool:
        """Whether the script is to see GPUs at all."""
        return self.request.gpus != 0 and (self._is_bare or bool(self._gives))

    @property
    def matters(self) -> bool:
        """Whether there is anything to say, beyond that it was not asked for."""
        return self.is_present or self.request.asked or os.path.exists(KFD) or AMDSMI_FOLDER in self._environment

    def require_driver(self) -> None:
        """Before an image is fetched for a run that must have a GPU on a machine that has none."""
        if self.request.require and not self.is_present:
            self.check()

    def hear(self, wait: Callable[[float], None]) -> None:
        """What the driver says, which was asked when this was made."""
        self._devices.hear(wait)

    def header(self) -> bytes:
        """The lines about the devices that the script gets, for its output."""
        return gpus.header(self.report, None if self._lease is None else self._lease.uuids) if self.is_given else b""

    def look_at(self, prefix: str, python: str, platform: str = "") -> None:
        """Read what is installed in the script's environment, and say what speaks against it."""
        if not self.report["devices"]:
            return
        from holdfast.farside.environments.build_findings import looked_at

        found, names = looked_at(prefix, python, self.report, platform)
        self.learn(found, names)
        if self.is_given:
            for each in found:
                self._note("%s %s" % (each.sentence, each.remedy))

    def learn(self, findings: Sequence["BuildFinding"], frameworks: Sequence[str]) -> None:
        self._findings += findings
        self._frameworks += frameworks

    def lease(self) -> None:
        """Wait until the run has the GPUs that it asks for. Where there is no driver there is nothing to wait for: the
        checks say so."""
        if not self.request.is_leasing or not self.is_given:
            return
        if not self.is_present:
            if os.path.exists(KFD):
                self._note("GPUs of AMD are not leased: other runs on this machine may use the same ones.")
            return
        if self.request.gpus == ALL and not self._is_answered():
            return
        if self.report["state"] == gpus.OK and not any(each["state"] == "ok" for each in self.report["devices"]):
            return
        from holdfast.farside.gpu.lease import leases, registry

        holder = leases.LeaseHolder(os.getuid(), self._run, os.getppid())
        wait = self._owner.wait
        self._lease = leases.lease(self.request, self.report, self._ask, self._tell_waiting, wait, holder)
        registry.hand_over(self._given, self._lease.sockets)
        self._owner.tell("leased", gpus=list(self._lease.uuids), names=[each.name for each in self._lease.units])

    def _is_answered(self) -> bool:
        """Whether the driver works, after a while if need be. Who asked for all goes on without a lease if not."""
        if self.report["state"] == gpus.TIMED_OUT:
            self._tell_waiting("waiting for the GPUs: the driver does not answer")
            self._ask(PATIENCE)
        if self.report["state"] != gpus.OK:
            why = str(self.report["problem"]).rstrip(".") or "the driver does not work"
            self._note("The GPUs are not leased, and others may use them too: %s." % why)
        return bool(self.report["state"] == gpus.OK)

    def units(self) -> Optional[List[Any]]:
        """What the container gets; None: all that there are."""
        return None if self._lease is None else list(self._lease.units)

    def variables(self, given: Dict[str, str], image: Dict[str, str]) -> Dict[str, str]:
        """What the script's variables become for the lease, on a bare machine. `given` are those of the plan: a value
        that the user wrote there is obeyed. `image` are those that a container has by itself."""
        self._visible = given.get(VISIBLE, image.get(VISIBLE) if not self._is_bare else self._environment.get(VISIBLE))
        if VISIBLE in given or not self._is_bare:
            self._warn_of(given)
            return {}
        if self.request.gpus == 0:
            self._visible = ""
        elif self._lease is not None:
            self._visible = ",".join(self._lease.uuids)
        else:
            return {}
        return {VISIBLE: self._visible}

    def _warn_of(self, given: Dict[str, str]) -> None:
        if VISIBLE in given and self._lease is not None and self.request.gpus != ALL:
            self._note(
                "`%s: %s` in the run configuration is obeyed, and may hide what was leased to this run or show what"
                " is another's: %s. Take it out: the lease sets it."
                % (VISIBLE, given[VISIBLE] or '""', ", ".join(each.label for each in self._lease.units))
            )

    def check(self, way: str = "") -> None:
        """Say what keeps the script from using a GPU; Refused where it must have one. `way` is how its container gets
        them."""
        self._way = way
        if not self.matters:
            return
        from holdfast.farside.gpu.judge.checks import check

        facts = self._keep_facts()
        told = {each.sentence for each in self._findings}
        failing = check(facts)
        fatal = next((each for each in failing if each.is_fatal and self.request.require), None)
        for each in failing:
            if self.request.asked and each is not fatal and each.sentence not in told:
                self._note("%s %s" % (each.sentence, each.remedy))
        if fatal is not None:
            raise Refused(REFUSED, fatal.sentence, fatal.remedy)

    def start(self) -> None:
        """Watch, from now on. Nothing of it keeps the script from starting."""
        if not self.matters:
            return
        from holdfast.farside.gpu.watch.sampler_child import Sampling
        from holdfast.farside.gpu.watch.source import kind

        if kind(self._environment) not in ("nvml", "amdsmi"):
            return
        try:
            self._sampling = Sampling(self._owner.folder, os.getppid(), self._attendant)
        except (CannotStart, OSError) as problem:
            self._note("The GPUs cannot be watched: %s." % problem)

    def watchdog(self) -> Optional["GpuWatchdog"]:
        """When the script has started."""
        self._started = time.time()
        facts = self._keep_facts() if self.matters else None  # again: more may have been learned of a container by now
        if facts is None or self._sampling is None or not self.is_given:
            if self.request.stop_if_idle:
                self._note("There is no GPU of this run's to watch, so --stop-if-idle does not end it.")
            return None
        from holdfast.farside.gpu.watch.watchdog import GpuWatchdog

        return GpuWatchdog(self._owner.folder, facts, self._run, self._note)

    def spared(self) -> Set[int]:
        """Processes that are not the script's."""
        stuck = set(self._devices.abandoned)
        if self._sampling is not None and self._sampling.is_alive:
            stuck.add(self._sampling.pid)
        return stuck

    def stop_asking(self) -> None:
        """The driver is not waited for any more."""
        self._devices.end()

    def finish(self, ended: Optional[float], result: Optional["Exit"]) -> None:
        """End what of the run is still on a device, and say what came of it. `ended` None: the script never ran."""
        if not self.matters:
            self._owner.tell("gpu", **NOT_ASKED)
            return
        from holdfast.farside.gpu.gpu_facts import End
        from holdfast.farside.gpu.judge.output_clues import MOST_READ, recognise
        from holdfast.farside.gpu.judge.verdict import judged
        from holdfast.farside.gpu.samples import Samples

        left, is_stalled = self._end_left(ended)
        said = tuple(recognise(_tail(os.path.join(self._owner.folder, OUTPUT), MOST_READ)))
        code, number = (None, None) if result is None else (result.code, result.signal)
        when = time.time() if ended is None else ended
        is_stopped = self._started is None and self._attendant.stop is not None
        end = End(self._started, when, code, number, said, left, is_stalled, is_stopped)
        samples = Samples()
        if self._sampling is not None:
            self._sampling.end()
            samples = self._sampling.samples()
        self._owner.tell("gpu", **judged(self._gather(), end, samples))

    def _end_left(self, ended: Optional[float]) -> Tuple[Tuple["Left", ...], bool]:
        sampling = self._sampling
        if sampling is None or self._started is None or ended is None:
            return (), False
        if not sampling.samples().ticks and ended - self._started < SHORT:
            return (), False
        from holdfast.farside.gpu.watch.sampler_child import end_left

        left, killed, answered = end_left(sampling, lambda seconds: self._attendant.wait(seconds, None))
        if killed:
            self._owner.tell("swept", processes=[list(each) for each in killed[:100]], count=len(killed))
        return tuple(left), not answered and sampling.is_stalled

    def _keep_facts(self) -> "GpuFacts":
        """For the verdict, whichever process makes it."""
        from holdfast.farside.gpu.gpu_facts import as_json

        facts = self._gather()
        path = os.path.join(self._owner.folder, GPU_FACTS)
        try:
            write_whole(path, json.dumps(as_json(facts)))
        except OSError:
            pass  # only a guardian whose supervisor died would miss it
        return facts

    def _gather(self) -> "GpuFacts":
        from holdfast.farside.gpu.gpu_facts import GpuFacts
        from holdfast.farside.gpu.occupants import has_machine_pids, occupied
        from holdfast.farside.gpu.watch.source import AMDSMI, kind

        lease, report = self._lease, self.report
        is_amd_watched = not self.is_present and kind(self._environment) == AMDSMI
        return GpuFacts(
            request=self.request,
            driver_state="" if is_amd_watched else str(report["state"]),
            problem=str(report["problem"]),
            driver=report["driver"],
            cuda=report["cuda"],
            devices=occupied(report, is_amd_watched),
            container=None if self._is_bare else self._way if self.is_given else "",
            refuses=self.request.gpus == 0 or (self._gives is False and not self.request.asked),
            leased=() if lease is None else lease.uuids,
            visible=self._visible,
            findings=tuple(self._findings),
            frameworks=tuple(self._frameworks),
            file=self._file,
            has_machine_pids=has_machine_pids(),
        )

    def _ask(self, patience: float = GREAT_PATIENCE) -> gpus.Report:
        """Once more, while signals and requests are attended to. A driver that holds one who asked, for ever, is not
        asked again."""
        if self._devices.abandoned - set(self._attendant.exits):
            return dict(self.report, state=gpus.TIMED_OUT, problem="the driver holds a process that asked it")
        before, self._devices = self._devices, gpus.DriverQuestion(self._attendant, _unsaid)
        self._devices.report = before.report  # until there is another
        self._devices.abandoned |= before.abandoned
        self._devices.hear(self._owner.wait, patience)
        return self.report

    def _tell_waiting(self, text: str) -> None:
        self._owner.tell("phase", name="gpus", text=text)

    def _note(self, text: str) -> None:
        self._owner.tell("note", text=text)


NOT_ASKED: Dict[str, Any] = {
    "state": "not-asked",
    "reason": "not-asked",
    "sentence": "GPU not asked for.",
    "remedy": "",
    "devices": [],
    "waited": None,
    "spells": [],
    "evidence": "",
}
"""Said of most runs on machines without one: nothing has to be loaded for it."""


def asked_by(plan: Dict[str, Any]) -> str:
    """Where GPUs are asked for, if it is not the target itself; empty then."""
    by = parse(plan.get("gpu")).by
    return "" if "nvidiaDocker" in by else by


def _unsaid(text: str) -> None:
    """What is wrong with devices that the script does not get anyway."""


def _tail(path: str, size: int) -> bytes:
    try:
        with open(path, "rb") as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - size))
            return source.read()
    except OSError:
        return b""
