"""Whether a run used the GPUs: one answer with its reason, from facts and samples. Pure.

"Not used" is said only where it is proved: by what the script was given, or by looks that show whose work it was. What
cannot be known is said to be unknown.
"""

import os
from typing import Any, Dict, Optional, Sequence

from holdfast.farside.gpu import gpu_facts, samples
from holdfast.farside.gpu.gpu_facts import End, GpuFacts
from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.case import Case, Tally, use_of, users, weigh
from holdfast.farside.gpu.judge.evidence import LADDER, waiting
from holdfast.farside.gpu.judge.reasons import NOT_USED, UNKNOWN, Cause, DeviceUse, Verdict, worded
from holdfast.farside.gpu.judge.use import never_started, not_asked, not_used, used
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.samples import Samples
from holdfast.farside.system import foreign
from holdfast.farside.system.layout import GPU_FACTS, SAMPLES


def judge(facts: GpuFacts, end: End, samples: Samples) -> Verdict:
    """Of any run, also of one that never started or was not watched."""
    if end.started is None:
        return never_started(facts, end)
    case = weigh(facts, end, samples, end.started)
    found = users(case)
    if found:
        return _whole(case, used(case, found), found)
    if not facts.is_meant:
        return not_asked(facts)
    said = not_used(case)
    return _whole(case, said, []) if said.state == NOT_USED else said


def _whole(case: Case, said: Verdict, found: Sequence[Tally]) -> Verdict:
    """With what each device did, and when they waited. `found` are those that were used."""
    used_ones = {each.part.number for each in found}
    numbers = used_ones | {number for number in case.meant if not found or case.tallies[number].part.is_leased}
    shown = [use_of(case.tallies[number], number in used_ones) for number in sorted(numbers)]
    known = {each for one in found for each in one.evidence}
    waited, spells = waiting(case.during, case.kinds, case.meant, case.started)
    return said._replace(
        devices=tuple(_rounded(each) for each in shown),
        waited=waited,
        spells=spells,
        evidence=next((each for each in LADDER if each in known), ""),
    )


def _rounded(use: DeviceUse) -> DeviceUse:
    """A journal is read by people too."""

    def cut(value: Optional[float], digits: int) -> Optional[float]:
        return None if value is None else round(value, digits)

    return use._replace(mean=cut(use.mean, 1), first_use=cut(use.first_use, 1), busy=cut(use.busy, 4))


_DAMAGED = "what was seen of the GPUs cannot be read"
_REMEDY = (
    "Look at `gpu.jsonl` in the run's folder and at the disk that it is on: lines in it are damaged. The run itself is "
    "not concerned."
)
_ANYTHING = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


def conclude(folder: str, end: End, request: Optional[GpuRequest] = None) -> Dict[str, Any]:
    """The keys of the journal's event `gpu`. Never raises for files that are missing or damaged: what they would have
    said is unknown. `request` is what the run asked for, where no file says it."""
    facts = _facts(os.path.join(folder, GPU_FACTS))
    if facts is None:
        facts = gpu_facts.NOTHING._replace(request=request or GpuRequest())
    try:
        file = samples.Following(os.path.join(folder, SAMPLES))
        file.read_on()
        seen = file.samples()
    except _ANYTHING:
        return _damaged(facts)
    return judged(facts, end, seen)


def judged(facts: GpuFacts, end: End, seen: Samples) -> Dict[str, Any]:
    """The keys of the journal's event `gpu`. Never raises: whole lines of an unknown kind may be among what
    was seen, and a verdict must not cost a run its ending."""
    try:
        return judge(facts, end, seen).as_json()
    except _ANYTHING:
        return _damaged(facts)


def _damaged(facts: GpuFacts) -> Dict[str, Any]:
    cause = Cause(reasons.NOT_WATCHED, _DAMAGED, _REMEDY)
    return (worded(UNKNOWN, cause) if facts.is_meant else not_asked(facts)).as_json()


def _facts(path: str) -> Optional[GpuFacts]:
    try:
        return gpu_facts.parse(foreign.parsed(_content(path)))
    except (ValueError, RecursionError):
        return None


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read()
    except OSError:
        return b""
