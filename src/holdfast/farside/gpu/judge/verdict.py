"""Whether a run used the GPUs: one answer with its reason, from facts and samples. Pure.

"Not used" is said only where it is proved: by what the script was given, or by looks that show whose work it was. What
cannot be known is said to be unknown.
"""

import json
import os
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu import gpu_facts as known
from holdfast.farside.gpu import samples
from holdfast.farside.gpu.gpu_facts import End, GpuFacts
from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.answer import NOT_ASKED as NOT_ASKED
from holdfast.farside.gpu.judge.answer import NOT_AVAILABLE as NOT_AVAILABLE
from holdfast.farside.gpu.judge.answer import NOT_USED as NOT_USED
from holdfast.farside.gpu.judge.answer import PARTLY_USED as PARTLY_USED
from holdfast.farside.gpu.judge.answer import STATES as STATES
from holdfast.farside.gpu.judge.answer import UNKNOWN as UNKNOWN
from holdfast.farside.gpu.judge.answer import USED as USED
from holdfast.farside.gpu.judge.answer import Answer, Case, use_of, users, weigh, worded
from holdfast.farside.gpu.judge.answer import Use as Use
from holdfast.farside.gpu.judge.evidence import LADDER, Tally
from holdfast.farside.gpu.judge.idle import IdleTime, waiting
from holdfast.farside.gpu.judge.use import never_started, not_asked, not_used, used
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.samples import Samples
from holdfast.farside.system.layout import GPU_FACTS, SAMPLES


class Verdict(NamedTuple):
    """The journal's event `gpu`. `waited` is the share of the script's time in which the GPUs waited, as far as they
    were watched; `spells` are the longest times without work, in seconds after its start; `evidence` is `utilisation`,
    `memory`, `device` or nothing."""

    state: str
    reason: str
    sentence: str
    remedy: str
    devices: Tuple[Use, ...]
    waited: Optional[float]
    spells: Tuple[Tuple[float, float], ...]
    evidence: str


def judge(facts: GpuFacts, end: End, samples: Samples) -> Verdict:
    """Of any run, also of one that never started or was not watched."""
    if end.started is None:
        return _bare(never_started(facts, end))
    case = weigh(facts, end, samples, end.started)
    found = users(case)
    if found:
        return _whole(case, used(case, found), found)
    if not facts.is_meant:
        return _bare(not_asked(facts))
    said = not_used(case)
    return _whole(case, said, []) if said.state == NOT_USED else _bare(said)


def as_json(verdict: Verdict) -> Dict[str, Any]:
    found = dict(verdict._asdict())
    found["devices"] = [dict(each._asdict()) for each in verdict.devices]
    found["spells"] = [list(each) for each in verdict.spells]
    return found


def parse(found: Any) -> Verdict:
    """ValueError where it is not what `as_json` makes, or of a later version that has more states or reasons."""
    try:
        state, reason = str(found["state"]), str(found["reason"])
        if state not in STATES or reason not in reasons.REASONS:
            raise ValueError("there is no verdict `%s` for the reason `%s`" % (state, reason))
        return Verdict(
            state=state,
            reason=reason,
            sentence=str(found["sentence"]),
            remedy=str(found["remedy"]),
            devices=tuple(Use(**{name: each[name] for name in Use._fields}) for each in found["devices"]),
            waited=None if found["waited"] is None else float(found["waited"]),
            spells=tuple((float(begin), float(end)) for begin, end in found["spells"]),
            evidence=str(found["evidence"]),
        )
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError("this is no verdict: %s" % error)


def _whole(case: Case, said: Answer, found: Sequence[Tally]) -> Verdict:
    used_ones = {each.part.number for each in found}
    numbers = used_ones | {number for number in case.meant if not found or case.tallies[number].part.is_leased}
    shown = [use_of(case.tallies[number], number in used_ones) for number in sorted(numbers)]
    known = {each for one in found for each in one.evidence}
    evidence = next((each for each in LADDER if each in known), "")
    rest: IdleTime = waiting(case.during, case.kinds, case.meant, case.started)
    return Verdict(
        *said, devices=tuple(_rounded(each) for each in shown), waited=rest.share, spells=rest.spells, evidence=evidence
    )


def _bare(said: Answer) -> Verdict:
    return Verdict(*said, devices=(), waited=None, spells=(), evidence="")


def _rounded(use: Use) -> Use:
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
        facts = known.NOTHING._replace(request=request or GpuRequest())
    try:
        seen = samples.read(_content(os.path.join(folder, SAMPLES)))
    except _ANYTHING:
        return _damaged(facts)
    return judged(facts, end, seen)


def judged(facts: GpuFacts, end: End, seen: Samples) -> Dict[str, Any]:
    """The keys of the journal's event `gpu`. Never raises: whole lines of an unknown kind may be among what
    was seen, and a verdict must not cost a run its ending."""
    try:
        return as_json(judge(facts, end, seen))
    except _ANYTHING:
        return _damaged(facts)


def _damaged(facts: GpuFacts) -> Dict[str, Any]:
    said = worded(UNKNOWN, reasons.NOT_WATCHED, _DAMAGED, _REMEDY) if facts.is_meant else not_asked(facts)
    return as_json(Verdict(*said, devices=(), waited=None, spells=(), evidence=""))


def _facts(path: str) -> Optional[GpuFacts]:
    try:
        return known.parse(json.loads(_content(path).decode("utf-8")))
    except (ValueError, RecursionError):
        return None


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read()
    except OSError:
        return b""
