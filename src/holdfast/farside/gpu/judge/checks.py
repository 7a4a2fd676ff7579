"""Whether a script that is about to start can use a GPU: what speaks against it, with what to do. Pure."""

from typing import List, Optional, Sequence, Union

from holdfast.farside.environments import build_findings
from holdfast.farside.environments.build_findings import BuildFinding
from holdfast.farside.environments.frameworks import framework_of
from holdfast.farside.gpu import phrases
from holdfast.farside.gpu.devices import NAMED, OK, GpuDevice
from holdfast.farside.gpu.gpu_facts import GpuFacts, is_hidden, seen
from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.reasons import Blanks, Cause
from holdfast.farside.gpu.request import ALL
from holdfast.farside.machine import driver_states


def check(facts: GpuFacts) -> List[Cause]:
    """What fails, in the order in which it keeps a script from its GPU; none where nothing speaks against it."""
    nothing = missing(facts)
    if nothing is not None:
        return [nothing]
    too_few, devices = _too_few(facts), _meant(facts)
    failing = [too_few, _hidden(facts), _failed(reasons.CONTAINER, facts) if facts.container == "" else None]
    failing += unfit(facts)
    failing.append(_occupied(facts, devices))
    failing.append(None if too_few is not None else _short_of_memory(facts, devices))
    return [each for each in failing if each is not None]


def unfit(facts: GpuFacts) -> List[Cause]:
    """What is installed and does not fit, in the words of the environment's check. Fatal is what leaves the script no
    framework that can use a GPU."""
    fatal = _fatal_findings(facts.findings, facts.frameworks)
    return [
        Cause(reason_of(each), each.sentence, each.remedy, each in fatal)
        for each in facts.findings
        if each.severity == build_findings.ERROR
    ]


def fatal_finding(found: Sequence[BuildFinding], frameworks: Sequence[str]) -> Optional[BuildFinding]:
    """The first of `_fatal_findings`: what a run that must have a GPU is not to start for."""
    return next(iter(_fatal_findings(found, frameworks)), None)


def _fatal_findings(found: Sequence[BuildFinding], frameworks: Sequence[str]) -> List[BuildFinding]:
    """What keeps a framework from the GPU, if it keeps all that there are (`frameworks`, their names). One that fits is
    enough: what else is installed may be there for something else."""
    wrong = [each for each in found if each.severity == build_findings.ERROR and framework_of(each.package)]
    unable = [each for each in found if each.severity == build_findings.ERROR or each.kind == build_findings.CPU_BUILD]
    fitting = set(frameworks) - {framework_of(each.package) for each in unable}
    return [] if fitting else wrong


def proof(facts: GpuFacts, said: Sequence[str] = (), was_touched: bool = False) -> Optional[Cause]:
    """What proves by itself that the script could not use a GPU, whatever was seen of it. `said`: what its output
    names; what the environment's check found too is sure then. `was_touched`: a process of the run was on a device, so
    nothing has hidden them all; a script may set its own variables."""
    if missing(facts) is not None:
        return None
    built = {framework_of(each.package) for each in facts.findings if _is_cpu_build(each)}
    for each in check(facts):
        if each.reason in (reasons.HIDDEN, reasons.CONTAINER) and not was_touched:
            return each
        if each.reason == reasons.CPU_BUILD and each.is_fatal and built >= set(facts.frameworks):
            return each
    return next((each for each in unfit(facts) if each.is_fatal and each.reason in said), None)


def reason_of(finding: BuildFinding) -> str:
    """Of what the check of the environment found."""
    return {
        build_findings.CPU_BUILD: reasons.CPU_BUILD,
        build_findings.DRIVER_TOO_OLD: reasons.DRIVER_TOO_OLD,
        build_findings.NO_CODE: reasons.NO_CODE,
    }.get(finding.kind, reasons.WRONG_BUILD)


def missing(facts: GpuFacts) -> Optional[Cause]:
    """Where no GPU is there that could be used and watched, or it is not known; None if there is one."""
    if any(each.state == OK for each in facts.devices) or not facts.driver_state:
        return None
    broken = [each for each in facts.devices if each.state != NAMED]
    if facts.driver_state == driver_states.TIMED_OUT:
        return _failed(reasons.SILENT, facts, detail=facts.problem)
    if broken:
        return _failed(reasons.BROKEN, facts, detail=phrases.states(broken))
    if facts.devices:
        return _failed(reasons.NOT_WATCHED, facts)._replace(is_fatal=False)
    if facts.driver_state == driver_states.FAILED:
        return _failed(reasons.FAILING, facts, detail=facts.problem)
    return _failed(reasons.NO_GPU if facts.driver_state == driver_states.OK else reasons.NO_DRIVER, facts)


def blanks_of(facts: GpuFacts) -> Blanks:
    """What is known before the script has started."""
    known = Blanks()
    return known._replace(
        devices=phrases.devices(facts.devices) or known.devices,
        visible="`%s`" % facts.visible if facts.visible else known.visible,
        file="`%s`" % facts.file if facts.file else known.file,
        by=facts.request.by or known.by,
        asking=": the run asks with " + facts.request.by if facts.request.by else known.asking,
        driver=facts.driver or known.driver,
    )


def _is_cpu_build(finding: BuildFinding) -> bool:
    return finding.kind == build_findings.CPU_BUILD and finding.severity == build_findings.ERROR


def _meant(facts: GpuFacts) -> List[GpuDevice]:
    visible = [each for each in seen(facts) if each.state == OK]
    return [each for each in visible if facts.leases(each)] or visible


def _hidden(facts: GpuFacts) -> Optional[Cause]:
    if not is_hidden(facts):
        return None
    is_written = facts.request.is_leasing or facts.container is not None
    return _failed(reasons.OBEYED, facts) if is_written else _failed(reasons.HIDDEN, facts)


def _too_few(facts: GpuFacts) -> Optional[Cause]:
    """Of devices that are cut by MIG each part counts, and the lease knows how many those are."""
    asked, least = facts.request.gpus, facts.request.min_memory or 0
    wanted = 1 if asked == ALL and least else asked if isinstance(asked, int) else 0
    there = [each for each in facts.devices if each.state == OK]
    enough = [each for each in there if not least or (each.memory_total or 0) >= least]
    if wanted <= len(enough) or not there or any(each.mig for each in facts.devices):
        return None
    if not enough:
        largest = max((each.memory_total for each in there if each.memory_total is not None), default=None)
        amount, detail = phrases.asked_memory(least), phrases.memory(largest)
        return _failed(reasons.TOO_SMALL, facts, amount=amount, detail=detail)
    which = "that works" if len(enough) == 1 else "that work"
    if least:
        which = "with %s of memory" % phrases.asked_memory(least)
    count = "%s %s" % (phrases.counted(len(enough), "GPU"), which)
    return _failed(reasons.TOO_FEW, facts, detail=count, number=str(len(enough)))


def _occupied(facts: GpuFacts, devices: Sequence[GpuDevice]) -> Optional[Cause]:
    """One that is free is enough."""
    if not devices or any(not each.strangers for each in devices):
        return None
    shown = "; ".join("%s has %s" % (phrases.device(each), phrases.processes(each.strangers)) for each in devices)
    return _failed(reasons.OCCUPIED, facts, detail=shown)


def _short_of_memory(facts: GpuFacts, devices: Sequence[GpuDevice]) -> Optional[Cause]:
    least = facts.request.min_memory
    if not least or not devices:
        return None
    known = [(each, each.memory_free) for each in devices]
    if any(free is None or free >= least for _, free in known):
        return None
    shown = ", ".join("%s has %s" % (phrases.device(each), phrases.memory(free)) for each, free in known)
    return _failed(reasons.TOO_FULL, facts, amount=phrases.asked_memory(least), detail=shown)


def _failed(found: Union[str, Cause], facts: GpuFacts, **blanks: str) -> Cause:
    cause = reasons.filled(found, blanks_of(facts)._replace(**blanks))
    return cause._replace(sentence=phrases.capital(cause.sentence).rstrip(". :") + ".")
