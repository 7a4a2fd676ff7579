"""What a supervisor does about GPUs: it leases, checks and watches them, and says what came of it. The steps are in an
order that their types enforce: each is made by the one before it, and all share what is known (`_Gpus`)."""

import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.gpu.request import ALL, GpuRequest, parse
from holdfast.farside.machine import driver_states, gpus
from holdfast.farside.system.children import Attendant, CannotStart, inherited_environment
from holdfast.farside.system.files import write_whole
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import GPU_FACTS, JOURNAL, OUTPUT
from holdfast.farside.system.nofollow import open_plain
from holdfast.farside.system.refusal import Refused

if TYPE_CHECKING:
    from holdfast.farside.environments.build_findings import BuildFinding
    from holdfast.farside.environments.workshop import Supervision
    from holdfast.farside.gpu.devices import GpuDevice
    from holdfast.farside.gpu.gpu_facts import GpuFacts, Left
    from holdfast.farside.gpu.lease.leases import Lease
    from holdfast.farside.gpu.watch.sampler_child import Sampling
    from holdfast.farside.gpu.watch.watchdog import GpuWatchdog
    from holdfast.farside.system.children import Exit

REFUSED = "gpu"
"""Of a refusal: the run must have a GPU, and this one would not."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_KFD, _AMDSMI_FOLDER = "/dev/kfd", "HOLDFAST_AMDSMI"
"""The device file for computing on AMD GPUs, and the variable that names the folder of AMD's library instead."""
_SHORT = 5.0
"""A script that took fewer seconds does not wait at its end for a driver that has not answered yet."""
_PATIENCE, _GREAT_PATIENCE = 10.0, 60.0
"""Seconds for a driver to wake up before devices can be leased: if the run can go on without a lease, and if it
cannot."""
_NOT_ASKED: Dict[str, Any] = {
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


class _Gpus:
    """What is known of the run's GPUs, which every step adds to. `given` is where leases are handed to the guardian, if
    there can be any."""

    def __init__(self, plan: Dict[str, Any], owner: "Supervision", attendant: Attendant, given: Any) -> None:
        self.request: GpuRequest = parse(plan.get("gpu"))
        container = plan.get("container")
        self.run, self.owner, self.attendant, self.given = str(plan["run"]), owner, attendant, given
        self.clock = JournalWriter(os.path.join(owner.folder, JOURNAL)).clock()
        self._gives = None if container is None else container["gpus"]
        self.is_bare = container is None
        self._file = "" if container is None else str(container["file"])
        self.environment = inherited_environment()
        self.is_present = gpus.is_present(self.environment)
        self.question = gpus.DriverQuestion(attendant, self.note if self.is_given else _unsaid)
        self.lease: Optional[Lease] = None
        self.findings: List[BuildFinding] = []
        self.frameworks: List[str] = []
        self.visible: Optional[str] = None
        self._way = ""
        self.sampling: Optional[Sampling] = None
        self.started: Optional[float] = None

    @property
    def report(self) -> gpus.Report:
        return self.question.report

    @property
    def is_given(self) -> bool:
        return self.request.gpus != 0 and (self.is_bare or bool(self._gives))

    @property
    def matters(self) -> bool:
        """Whether there is anything to say, beyond that it was not asked for."""
        return self.is_present or self.request.asked or os.path.exists(_KFD) or _AMDSMI_FOLDER in self.environment

    def note(self, text: str) -> None:
        self.owner.tell("note", text=text)

    def tell_waiting(self, text: str) -> None:
        self.owner.tell("phase", name="gpus", text=text)

    def ask(self, patience: float = _GREAT_PATIENCE) -> gpus.Report:
        """Once more, while signals and requests are attended to. A driver that holds a process that asked it, for ever,
        is not asked again."""
        if self.question.abandoned - set(self.attendant.exits):
            return dict(self.report, state=driver_states.TIMED_OUT, problem="the driver holds a process that asked it")
        before, self.question = self.question, gpus.DriverQuestion(self.attendant, _unsaid)
        self.question.report = before.report  # until there is another
        self.question.abandoned |= before.abandoned
        self.question.hear(self.owner.wait, patience)
        return self.report

    def check(self, way: str = "") -> None:
        self._way = way
        if not self.matters:
            return
        from holdfast.farside.gpu.judge.checks import check

        facts = self.keep_facts()
        told = {each.sentence for each in self.findings}
        failing = check(facts)
        fatal = next((each for each in failing if each.is_fatal and self.request.require), None)
        for each in failing:
            if self.request.asked and each is not fatal and each.sentence not in told:
                self.note("%s %s" % (each.sentence, each.remedy))
        if fatal is not None:
            raise Refused(REFUSED, fatal.sentence, fatal.remedy)

    def keep_facts(self) -> "GpuFacts":
        """For the verdict, whichever process makes it."""
        from holdfast.farside.gpu.gpu_facts import as_json

        facts = self.facts()
        try:
            write_whole(os.path.join(self.owner.folder, GPU_FACTS), json.dumps(as_json(facts)))
        except OSError:
            pass  # only a guardian whose supervisor died would miss it
        return facts

    def facts(self) -> "GpuFacts":
        from holdfast.farside.gpu.gpu_facts import GpuFacts
        from holdfast.farside.gpu.occupants import has_machine_pids, occupied
        from holdfast.farside.gpu.watch.source import AMDSMI, kind

        report = self.report
        is_amd_watched = not self.is_present and kind(self.environment) == AMDSMI
        return GpuFacts(
            request=self.request,
            driver_state="" if is_amd_watched else str(report["state"]),
            problem=str(report["problem"]),
            driver=report["driver"],
            cuda=report["cuda"],
            devices=occupied(report, is_amd_watched),
            container=None if self.is_bare else self._way if self.is_given else "",
            refuses=self.request.gpus == 0 or (self._gives is False and not self.request.asked),
            leased=() if self.lease is None else self.lease.uuids,
            visible=self.visible,
            findings=tuple(self.findings),
            frameworks=tuple(self.frameworks),
            file=self._file,
            has_machine_pids=has_machine_pids(),
        )


class GpuStep:
    """What can be asked and done at every step."""

    def __init__(self, known: _Gpus) -> None:
        self._gpus = known

    @property
    def report(self) -> gpus.Report:
        return self._gpus.report

    @property
    def request(self) -> GpuRequest:
        return self._gpus.request

    @property
    def is_given(self) -> bool:
        """Whether the script is to see GPUs at all."""
        return self._gpus.is_given

    def spared(self) -> Set[int]:
        """Processes that are not the script's."""
        stuck, sampling = set(self._gpus.question.abandoned), self._gpus.sampling
        return stuck | {sampling.pid} if sampling is not None and sampling.is_alive else stuck

    def stop_asking(self) -> None:
        """Nothing waits for the driver any more."""
        self._gpus.question.end()

    def finish(self, ended: Optional[float], result: Optional["Exit"]) -> None:
        """End processes of the run that are still on a device, and write the verdict. `ended` None: it never ran."""
        known = self._gpus
        if not known.matters:
            known.owner.tell("gpu", **_NOT_ASKED)
            return
        from holdfast.farside.gpu.gpu_facts import End
        from holdfast.farside.gpu.judge.output_clues import MOST_READ, recognise
        from holdfast.farside.gpu.judge.verdict import judged
        from holdfast.farside.gpu.samples import Samples

        left, is_stalled = self._end_left(ended)
        said = tuple(recognise(_tail(os.path.join(known.owner.folder, OUTPUT), MOST_READ)))
        code, number = (None, None) if result is None else (result.code, result.signal)
        when = known.clock.now() if ended is None else ended
        is_stopped = known.started is None and known.attendant.stop is not None
        end = End(known.started, when, code, number, said, left, is_stalled, is_stopped)
        samples = Samples()
        if known.sampling is not None:
            known.sampling.end()
            samples = known.sampling.samples()
        known.owner.tell("gpu", **judged(known.facts(), end, samples))

    def _end_left(self, ended: Optional[float]) -> Tuple[Tuple["Left", ...], bool]:
        """What stays on the devices, and whether the driver hangs."""
        sampling, started = self._gpus.sampling, self._gpus.started
        if sampling is None or started is None or ended is None:
            return (), False
        if not sampling.samples().ticks and ended - started < _SHORT:
            return (), False
        from holdfast.farside.gpu.watch.sampler_child import end_left

        left, killed, answered = end_left(sampling, lambda seconds: self._gpus.attendant.wait(seconds, None))
        if killed:
            self._gpus.owner.tell("swept", processes=[list(each) for each in killed[:100]], count=len(killed))
        return tuple(left), not answered and sampling.is_stalled


class DriverAsked(GpuStep):
    """Begins to ask the driver when it is made."""

    def __init__(self, plan: Dict[str, Any], supervision: "Supervision", attendant: Attendant, given: Any) -> None:
        super().__init__(_Gpus(plan, supervision, attendant, given))

    def require_driver(self) -> None:
        """Before an image is fetched for a run that must have a GPU on a machine that has none."""
        if self.request.require and not self._gpus.is_present:
            self._gpus.check()

    def hear(self, wait: Callable[[float], None]) -> "DriverHeard":
        self._gpus.question.hear(wait)
        return DriverHeard(self._gpus)


class DriverHeard(GpuStep):
    def look_at(self, prefix: str, python: str, platform: str = "") -> None:
        """Read what is installed in the script's environment, and say what speaks against it."""
        if not self.report["devices"]:
            return
        from holdfast.farside.environments.build_findings import looked_at

        found, names = looked_at(prefix, python, self.report, platform)
        self._gpus.findings += found
        self._gpus.frameworks += names
        if self.is_given:
            for each in found:
                self._gpus.note("%s %s" % (each.sentence, each.remedy))

    def lease(self) -> "GpusLeased":
        """Wait until the run has the GPUs that it asks for."""
        known = self._gpus
        if self.request.is_leasing and self.is_given and self._can_lease():
            from holdfast.farside.gpu.lease import leases, registry

            holder = leases.LeaseHolder(os.getuid(), known.run, os.getppid())
            leased = leases.lease(self.request, self.report, known.ask, known.tell_waiting, known.owner.wait, holder)
            known.lease = leased
            registry.hand_over(known.given, leased.sockets)
            known.owner.tell("leased", gpus=list(leased.uuids), names=[each.name for each in leased.units])
        return GpusLeased(known)

    def _can_lease(self) -> bool:
        """Where there is no driver there is nothing to wait for: the checks say so."""
        if not self._gpus.is_present:
            if os.path.exists(_KFD):
                self._gpus.note("GPUs of AMD are not leased: other runs on this machine may use the same ones.")
            return False
        if self.request.gpus == ALL and not self._is_answered():
            return False
        return self.report["state"] != driver_states.OK or any(
            each["state"] == driver_states.OK for each in self.report["devices"]
        )

    def _is_answered(self) -> bool:
        """Whether the driver works, perhaps after a while. If not, a run that asks for all goes on without a lease."""
        if self.report["state"] == driver_states.TIMED_OUT:
            self._gpus.tell_waiting("waiting for the GPUs: the driver does not answer")
            self._gpus.ask(_PATIENCE)
        if self.report["state"] != driver_states.OK:
            why = str(self.report["problem"]).rstrip(".") or "the driver does not work"
            self._gpus.note("The GPUs are not leased, and others may use them too: %s." % why)
        return bool(self.report["state"] == driver_states.OK)


class GpusLeased(GpuStep):
    def show(self, given: Dict[str, str], image: Dict[str, str]) -> "GpusShown":
        """`given` are the plan's variables, which are obeyed and, on a bare machine, get those of the lease; `image`
        are those that a container has by itself."""
        known, lease = self._gpus, self._gpus.lease
        known.visible = given.get(_VISIBLE, (known.environment if known.is_bare else image).get(_VISIBLE))
        if _VISIBLE in given and lease is not None and self.request.gpus != ALL:
            known.note(
                "`%s: %s` in the run configuration is obeyed, and may hide what was leased to this run or show what"
                " is another's: %s. Take it out: the lease sets it."
                % (_VISIBLE, given[_VISIBLE] or '""', ", ".join(each.label for each in lease.units))
            )
        if _VISIBLE not in given and known.is_bare and (self.request.gpus == 0 or lease is not None):
            known.visible = given[_VISIBLE] = "" if lease is None else ",".join(lease.uuids)
        return GpusShown(known)


class GpusShown(GpuStep):
    def units(self) -> Optional[List["GpuDevice"]]:
        """What the container gets; None: all that there are."""
        return None if self._gpus.lease is None else list(self._gpus.lease.units)

    def check(self, way: str) -> "GpusChecked":
        """Say what keeps the script from using a GPU; Refused where it must have one. `way` is how its container gets
        them."""
        self._gpus.check(way)
        return GpusChecked(self._gpus)


class GpusChecked(GpuStep):
    def header(self) -> bytes:
        """The lines about the devices that the script gets, for its output."""
        lease = self._gpus.lease
        return gpus.header(self.report, None if lease is None else lease.uuids) if self.is_given else b""

    def watch(self) -> "GpusWatched":
        """From now on. Nothing of it keeps the script from starting."""
        if self._gpus.matters:
            from holdfast.farside.gpu.watch.sampler_child import Sampling
            from holdfast.farside.gpu.watch.source import AMDSMI, NVML, kind

            try:
                if kind(self._gpus.environment) in (NVML, AMDSMI):
                    self._gpus.sampling = Sampling(self._gpus.owner.folder, os.getppid(), self._gpus.attendant)
            except (CannotStart, OSError) as problem:
                self._gpus.note("The GPUs cannot be watched: %s." % problem)
        return GpusWatched(self._gpus)


class GpusWatched(GpuStep):
    def learn(self, findings: Sequence["BuildFinding"], frameworks: Sequence[str]) -> None:
        """What was found when the script started."""
        self._gpus.findings += findings
        self._gpus.frameworks += frameworks

    def watchdog(self) -> Optional["GpuWatchdog"]:
        """When the script has started."""
        known = self._gpus
        known.started = known.clock.now()
        facts = known.keep_facts() if known.matters else None  # again: more may have been learned of a container by now
        if facts is None or known.sampling is None or not self.is_given:
            if self.request.stop_if_idle:
                known.note("There is no GPU of this run's to watch, so --stop-if-idle does not end it.")
            return None
        from holdfast.farside.gpu.watch.watchdog import GpuWatchdog

        return GpuWatchdog(known.owner.folder, facts, known.run, known.note, known.clock)


def _unsaid(text: str) -> None:
    """What is wrong with devices that the script does not get anyway."""


def _tail(path: str, size: int) -> bytes:
    try:
        with os.fdopen(open_plain(path), "rb") as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - size))
            return source.read()
    except OSError:
        return b""
