"""What is said of a run that used a GPU: which, how much, and what was wrong with it. Pure."""

from typing import List, Optional, Sequence

from holdfast.farside.gpu.judging import occasions, reasons, telling
from holdfast.farside.gpu.judging.answer import PARTLY_USED, USED, Answer, answer, answer_on, described, use_of
from holdfast.farside.gpu.judging.checks import blanks_of
from holdfast.farside.gpu.judging.evidence import ABSENT, UNKNOWN, UNMEASURED, WORKING
from holdfast.farside.gpu.judging.facts import End, Left
from holdfast.farside.gpu.judging.tallies import Tally
from holdfast.farside.gpu.judging.weighing import Case, is_proved_unused, losses

LITTLE = 0.1
ENOUGH_LOOKS = 20
_ENDED_BY_SOMEBODY = (130, 137, 143)
_CRASHES = (6, 7, 11)
"""SIGABRT, SIGBUS, SIGSEGV: how a library ends its process; other signals come from outside."""


def used(case: Case, found: Sequence[Tally]) -> Answer:
    """`found` are the devices that were used, one at least."""
    for judge in (_lost, _exhausted, _elsewhere, _left, _partly):
        fault = judge(case, found)
        if fault is not None:
            return fault
    return answer(USED, reasons.OK, blanks_of(case.facts)._replace(devices=_shown(found)))


def is_exhausted(end: End, found: Sequence[Tally]) -> bool:
    """Whether the script failed for want of memory of a GPU: it says so, or there was none left."""
    if reasons.OUT_OF_MEMORY in end.said and end.has_failed:
        return True
    is_crash = end.signal in _CRASHES or (end.signal is None and end.code not in (None, 0, *_ENDED_BY_SOMEBODY))
    return is_crash and any(each.is_full for each in found)


def left_text(left: Sequence[Left]) -> str:
    shown = ["process %d (%s) held %s" % (each.pid, each.name or "gone", telling.memory(each.memory)) for each in left]
    return telling.listed(shown) + " of GPU memory"


def _lost(case: Case, found: Sequence[Tally]) -> Optional[Answer]:
    mattering = {each.part.number for each in found} | {n for n in case.meant if case.tallies[n].part.is_leased}
    lost = [each for each in losses(case) if each.number in mattering]
    blanks = blanks_of(case.facts)._replace(devices=_shown(found))
    if lost:
        first = lost[0]
        part = case.tallies[first.number].part
        name = telling.named(part.name, part.uuid, part.number)
        when = telling.seconds(first.time - case.started)
        said = " (%s)" % first.problem.rstrip(".") if first.problem else ""
        detail = "%s was lost after %s%s; seen until then: %s" % (name, when, said, blanks.devices)
        return answer(PARTLY_USED, reasons.LOST, blanks._replace(detail=detail))
    if reasons.LOST in case.end.said and case.end.has_failed:
        return answer(PARTLY_USED, reasons.LOST, blanks, is_said=True)
    return None


def _exhausted(case: Case, found: Sequence[Tally]) -> Optional[Answer]:
    if not is_exhausted(case.end, found):
        return None
    blanks = blanks_of(case.facts)._replace(devices=_shown(found))
    return answer(USED, reasons.OUT_OF_MEMORY, blanks)


def _elsewhere(case: Case, found: Sequence[Tally]) -> Optional[Answer]:
    """On a device that is not the run's, beside its own or instead of them."""
    leased = [each for each in case.tallies.values() if each.part.is_leased]
    other = [each for each in found if not each.part.is_leased]
    if not leased or not other:
        return None
    is_all = all(any(each is one for one in found) for each in leased)
    blanks = blanks_of(case.facts)._replace(devices=_shown(other))
    return answer(USED if is_all else PARTLY_USED, reasons.OTHER_DEVICE, blanks)


def _left(case: Case, found: Sequence[Tally]) -> Optional[Answer]:
    if not case.end.left:
        return None
    blanks = blanks_of(case.facts)._replace(devices=_shown(found), detail=left_text(case.end.left))
    living = sorted({each.pid for each in case.end.left if each.name})
    if not living:
        return answer_on(USED, occasions.GONE, blanks)
    return answer(USED, reasons.LEFT, blanks._replace(pids=" ".join(str(each) for each in living)))


def _partly(case: Case, found: Sequence[Tally]) -> Optional[Answer]:
    """Fewer devices than were leased, or hardly any of the time. Which device a leased instance of MIG is on is not
    known, so those are not counted."""
    leased = [each for each in case.tallies.values() if each.part.is_leased]
    unused = [each for each in leased if not any(each is one for one in found) and is_proved_unused(case, each)]
    blanks = blanks_of(case.facts)
    if unused and not any(each.part.mig for each in leased):
        count = len(leased) - len(unused)
        detail = "%d of %d leased GPUs %s used" % (count, len(leased), "was" if count == 1 else "were")
        devices = "; ".join(described(use_of(each, not any(each is one for one in unused))) for each in leased)
        blanks = blanks._replace(detail=detail, devices=devices, number=str(count))
        return answer(PARTLY_USED, reasons.PARTLY, blanks)
    share = _share_since_first_use(case, found)
    if share is None or share >= LITTLE:
        return None
    return answer_on(PARTLY_USED, occasions.SELDOM, blanks._replace(detail=telling.share(share), devices=_shown(found)))


def _share_since_first_use(case: Case, found: Sequence[Tally]) -> Optional[float]:
    """What came before it may have been the preparation of the data. None where too little was seen."""
    first = min((each.first for each in found if each.first is not None), default=None)
    if first is None or len(case.during) < ENOUGH_LOOKS or all(each.is_unmeasured for each in found):
        return None
    worked = total = 0.0
    used = [case.kinds[each.part.number] for each in found]
    for place, look in enumerate(case.during):
        kinds = [each[place] for each in used if each[place] != ABSENT]
        if look.time - case.started >= first and kinds and UNKNOWN not in kinds:
            total += look.weight
            worked += look.weight if WORKING in kinds or UNMEASURED in kinds else 0.0
    return worked / total if total > 0 else None


def _shown(found: Sequence[Tally]) -> str:
    texts: List[str] = [described(use_of(each, True)) for each in found]
    return texts[0] if len(texts) == 1 else "%d GPUs: %s" % (len(texts), "; ".join(texts))
