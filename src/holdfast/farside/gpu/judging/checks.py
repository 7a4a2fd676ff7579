"""Whether a script that is about to start can use a GPU: what speaks against it, with what to do. Pure."""

from typing import List, NamedTuple, Optional, Sequence

from holdfast.farside.environments import findings
from holdfast.farside.environments.findings import Finding
from holdfast.farside.environments.frameworks import framework_of
from holdfast.farside.gpu.judging import reasons, telling
from holdfast.farside.gpu.judging.facts import NAMED, OK, Device, Facts, is_hidden, seen
from holdfast.farside.gpu.judging.reasons import Blanks
from holdfast.farside.machine import gpus


class Check(NamedTuple):
    """One that failed. `is_fatal`: a run that must have a GPU is not to start."""

    reason: str
    sentence: str
    remedy: str
    is_fatal: bool


def check(facts: Facts) -> List[Check]:
    """What fails, in the order in which it keeps a script from its GPU; none where nothing speaks against it."""
    nothing = missing(facts)
    if nothing is not None:
        return [nothing]
    failing = [each for each in (_too_few(facts),) if each is not None]
    if is_hidden(facts):
        failing.append(_failed(reasons.HIDDEN, facts))
    if facts.container == "":
        failing.append(_failed(reasons.CONTAINER, facts))
    failing += unfit(facts)
    devices = _meant(facts)
    failing += [each for each in (_occupied(facts, devices), _short_of_memory(facts, devices)) if each is not None]
    return failing


def unfit(facts: Facts) -> List[Check]:
    """What is installed and does not fit, in the words of the environment's check. Fatal is what leaves the script no
    framework that can use a GPU."""
    fatal = fatal_findings(facts.findings, facts.frameworks)
    return [
        Check(reason_of(each), each.sentence, each.remedy, each in fatal)
        for each in facts.findings
        if each.severity == findings.ERROR
    ]


def fatal_finding(found: Sequence[Finding], frameworks: Sequence[str]) -> Optional[Finding]:
    """The first of `fatal_findings`: what a run that must have a GPU is not to start for."""
    return next(iter(fatal_findings(found, frameworks)), None)


def fatal_findings(found: Sequence[Finding], frameworks: Sequence[str]) -> List[Finding]:
    """What keeps a framework from the GPU, if it keeps all that there are (`frameworks`, their names). One that fits is
    enough: what else is installed may be there for something else."""
    wrong = [each for each in found if each.severity == findings.ERROR and framework_of(each.package)]
    unable = [each for each in found if each.severity == findings.ERROR or each.kind == findings.CPU_BUILD]
    fitting = set(frameworks) - {framework_of(each.package) for each in unable}
    return [] if fitting else wrong


def proof(facts: Facts, said: Sequence[str] = (), was_touched: bool = False) -> Optional[Check]:
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


def reason_of(finding: Finding) -> str:
    """Of what the check of the environment found."""
    return {
        findings.CPU_BUILD: reasons.CPU_BUILD,
        findings.DRIVER_TOO_OLD: reasons.DRIVER_TOO_OLD,
        findings.NO_CODE: reasons.NO_CODE,
    }.get(finding.kind, reasons.WRONG_BUILD)


def missing(facts: Facts) -> Optional[Check]:
    """Where no GPU is there that could be used and watched, or nobody can say; None where there is one."""
    if any(each.state == OK for each in facts.devices) or not facts.driver_state:
        return None
    broken = [each for each in facts.devices if each.state != NAMED]
    if facts.driver_state == gpus.TIMED_OUT:
        return _failed(reasons.STALLED, facts, _full_stop("The NVIDIA driver does not answer: " + facts.problem))
    if broken:
        return _failed(reasons.LOST, facts, "No GPU works: %s." % telling.states(broken))
    if facts.devices:
        return _failed(reasons.NOT_WATCHED, facts)._replace(is_fatal=False)
    if facts.driver_state == gpus.FAILED:
        return _failed(reasons.NO_DRIVER, facts, _full_stop("The NVIDIA driver does not work: " + facts.problem))
    return _failed(reasons.NO_GPU if facts.driver_state == gpus.OK else reasons.NO_DRIVER, facts)


def blanks_of(facts: Facts) -> Blanks:
    """What is known before the script has started."""
    known = Blanks()
    return known._replace(
        devices=telling.devices(facts.devices) or known.devices,
        visible="`%s`" % facts.visible if facts.visible else known.visible,
        file="`%s`" % facts.file if facts.file else known.file,
        by=facts.request.by or known.by,
        driver=facts.driver or known.driver,
    )


def _is_cpu_build(finding: Finding) -> bool:
    return finding.kind == findings.CPU_BUILD and finding.severity == findings.ERROR


def _meant(facts: Facts) -> List[Device]:
    visible = [each for each in seen(facts) if each.state == OK]
    return [each for each in visible if facts.leases(each.uuid, each.mig)] or visible


def _too_few(facts: Facts) -> Optional[Check]:
    """Of devices that are cut by MIG each part counts, and how many those are is known to whoever leases them."""
    asked, least = facts.request.gpus, facts.request.min_memory
    if not isinstance(asked, int) or any(each.mig for each in facts.devices):
        return None
    enough = [each for each in facts.devices if each.state == OK and (each.memory_total or least or 0) >= (least or 0)]
    if asked <= len(enough):
        return None
    where = " with %s of memory" % telling.memory(least) if least else ""
    count = "%d GPU%s%s that work%s" % (len(enough), "" if len(enough) == 1 else "s", where, "s" * (len(enough) == 1))
    sentence = "%s asks for more than the machine has: %s." % (facts.request.by or "The run", count)
    return Check(reasons.NO_GPU, sentence, "Ask for fewer, or submit to a machine with more.", True)


def _occupied(facts: Facts, devices: Sequence[Device]) -> Optional[Check]:
    """One that is free is enough."""
    if not devices or any(not each.strangers for each in devices):
        return None
    shown = "; ".join("%s by %s" % (telling.device(each), telling.processes(each.strangers)) for each in devices)
    return _failed(reasons.STRANGER, facts, "Other processes compute on every GPU that the script can see: %s." % shown)


def _short_of_memory(facts: Facts, devices: Sequence[Device]) -> Optional[Check]:
    least = facts.request.min_memory
    if not least or not devices:
        return None
    known = [(each, each.memory_free) for each in devices]
    if any(free is None or free >= least for _, free in known):
        return None
    shown = ", ".join("%s has %s" % (telling.device(each), telling.memory(free)) for each, free in known)
    sentence = "No GPU has the %s of free memory that are asked for: %s." % (telling.memory(least), shown)
    remedy = (
        "Ask for less (`--min-gpu-memory`), or wait for others: `holdfast computetarget gpus NAME` shows who they are."
    )
    return Check(reasons.OUT_OF_MEMORY, sentence, remedy, True)


def _failed(reason: str, facts: Facts, sentence: str = "") -> Check:
    blanks = blanks_of(facts)
    text = sentence or _full_stop(telling.capital(reasons.sentence(reason, blanks)))
    return Check(reason, text, reasons.remedy(reason, blanks), True)


def _full_stop(text: str) -> str:
    return text.rstrip(". :") + "."
