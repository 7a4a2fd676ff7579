"""The verdict on a run's GPU use: which GPU, how much, what went wrong, or why it used none. Pure."""

from typing import List, Optional, Sequence

from holdfast.farside.gpu import phrases
from holdfast.farside.gpu.gpu_facts import End, GpuFacts, Left
from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.case import Case, Tally, described, is_proved_unused, losses, use_of
from holdfast.farside.gpu.judge.checks import blanks_of, check, missing, unfit
from holdfast.farside.gpu.judge.evidence import ABSENT, FEWEST_LOOKS, UNCLEAR, UNMEASURED, WORKING
from holdfast.farside.gpu.judge.reasons import (
    NOT_AVAILABLE,
    NOT_USED,
    PARTLY_USED,
    UNKNOWN,
    USED,
    Blanks,
    Cause,
    Verdict,
    answer,
    worded,
)
from holdfast.farside.gpu.samples import period
from holdfast.farside.machine import driver_states

_LITTLE = 0.1
_ENOUGH_LOOKS = 20
_ENDED_BY_SOMEBODY = (130, 137, 143)
_CRASHES = (6, 7, 11)
"""SIGABRT, SIGBUS, SIGSEGV: how a library ends its process; other signals come from outside."""


def used(case: Case, found: Sequence[Tally]) -> Verdict:
    """`found` are the devices that were used, one at least."""
    for judge in (_lost, _exhausted, _elsewhere, _left, _partly):
        fault = judge(case, found)
        if fault is not None:
            return fault
    return answer(USED, reasons.OK, blanks_of(case.facts)._replace(devices=_shown(found)))


def _is_exhausted(end: End, found: Sequence[Tally]) -> bool:
    """Whether the script ran out of GPU memory: it says so, or there was none left."""
    if reasons.OUT_OF_MEMORY in end.said and end.has_failed:
        return True
    is_crash = end.signal in _CRASHES or (end.signal is None and end.code not in (None, 0, *_ENDED_BY_SOMEBODY))
    return is_crash and any(each.is_full for each in found)


def _left_text(left: Sequence[Left]) -> str:
    shown = ["process %d (%s) held %s" % (each.pid, each.name or "gone", phrases.memory(each.memory)) for each in left]
    return phrases.listed(shown) + " of GPU memory"


def _lost(case: Case, found: Sequence[Tally]) -> Optional[Verdict]:
    mattering = {each.part.number for each in found} | {n for n in case.meant if case.tallies[n].part.is_leased}
    lost = [each for each in losses(case) if each.number in mattering]
    blanks = blanks_of(case.facts)._replace(devices=_shown(found))
    if lost:
        first = lost[0]
        part = case.tallies[first.number].part
        name = phrases.device(part)
        when = phrases.seconds(first.time - case.started)
        said = " (%s)" % first.problem.rstrip(".") if first.problem else ""
        detail = "%s was lost after %s%s; seen until then: %s" % (name, when, said, blanks.devices)
        return answer(PARTLY_USED, reasons.LOST, blanks._replace(detail=detail))
    if reasons.LOST in case.end.said and case.end.has_failed:
        return answer(PARTLY_USED, reasons.said(reasons.LOST), blanks)
    return None


def _exhausted(case: Case, found: Sequence[Tally]) -> Optional[Verdict]:
    if not _is_exhausted(case.end, found):
        return None
    blanks = blanks_of(case.facts)._replace(devices=_shown(found))
    return answer(USED, reasons.OUT_OF_MEMORY, blanks)


def _elsewhere(case: Case, found: Sequence[Tally]) -> Optional[Verdict]:
    """On a device that is not the run's, beside its own or instead of them."""
    leased = [each for each in case.tallies.values() if each.part.is_leased]
    other = [each for each in found if not each.part.is_leased]
    if not leased or not other:
        return None
    is_all = all(any(each is one for one in found) for each in leased)
    blanks = blanks_of(case.facts)._replace(devices=_shown(other))
    return answer(USED if is_all else PARTLY_USED, reasons.OTHER_DEVICE, blanks)


def _left(case: Case, found: Sequence[Tally]) -> Optional[Verdict]:
    if not case.end.left:
        return None
    blanks = blanks_of(case.facts)._replace(devices=_shown(found), detail=_left_text(case.end.left))
    living = sorted({each.pid for each in case.end.left if each.name})
    if not living:
        return answer(USED, reasons.GONE, blanks)
    return answer(USED, reasons.LEFT, blanks._replace(pids=" ".join(str(each) for each in living)))


def _partly(case: Case, found: Sequence[Tally]) -> Optional[Verdict]:
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
    if share is None or share >= _LITTLE:
        return None
    return answer(PARTLY_USED, reasons.SELDOM, blanks._replace(detail=phrases.share(share), devices=_shown(found)))


def _share_since_first_use(case: Case, found: Sequence[Tally]) -> Optional[float]:
    """What came before it may have been the preparation of the data. None where too little was seen."""
    first = min((each.first for each in found if each.first is not None), default=None)
    if first is None or len(case.during) < _ENOUGH_LOOKS or all(each.is_unmeasured for each in found):
        return None
    worked = total = 0.0
    used = [case.kinds[each.part.number] for each in found]
    for place, look in enumerate(case.during):
        kinds = [each[place] for each in used if each[place] != ABSENT]
        if look.time - case.started >= first and kinds and UNCLEAR not in kinds:
            total += look.weight
            worked += look.weight if WORKING in kinds or UNMEASURED in kinds else 0.0
    return worked / total if total > 0 else None


def _shown(found: Sequence[Tally]) -> str:
    texts: List[str] = [described(use_of(each, True)) for each in found]
    return texts[0] if len(texts) == 1 else "%d GPUs: %s" % (len(texts), "; ".join(texts))


_PASSING = (reasons.STRANGER, reasons.OUT_OF_MEMORY)
"""Before the start: what a run that is to lease a GPU waits for."""
_NOT_THERE = (reasons.NO_GPU, reasons.TOO_FEW, reasons.NO_DRIVER, reasons.LOST, *_PASSING)
_NOT_KNOWN = (reasons.STALLED, reasons.NOT_WATCHED)
_OFTEN = 0.2
"""Share of the looks in which others worked on a device: less does not keep a run from it."""

_UNSEEN = "there is no record for %s of the %s that the script ran, as where the machine sleeps or its clock is set"
_AWAKE = "Keep the machine from sleeping while a script runs; where it did not sleep, look at its load and its clock."


def not_asked(facts: GpuFacts) -> Verdict:
    return answer(reasons.NOT_ASKED, reasons.NOT_ASKED, blanks_of(facts))


def never_started(facts: GpuFacts, end: End) -> Verdict:
    """Refused, stopped or failed before its script was there. Where it was refused for a GPU, or the machine has none:
    that. What merely speaks against a GPU was not why it did not start."""
    if not facts.request.asked:
        return not_asked(facts)
    for each in check(facts):
        state = _state(each.reason)
        is_ours = each == missing(facts) if end.is_stopped else _refuses(each, facts)
        if each.is_fatal and is_ours and not (end.is_stopped and state == UNKNOWN):
            return _checked(state, each)
    return answer(UNKNOWN, reasons.INTERRUPTED, blanks_of(facts))


def not_used(case: Case) -> Verdict:
    for judge in (_unavailable, _lost_unused, _unable, _failed, _proved):
        found = judge(case)
        if found is not None:
            return found
    return _unknown(case)


def _unavailable(case: Case) -> Optional[Verdict]:
    """A machine without a GPU is no fault of a run that did not ask for one."""
    found = missing(case.facts)
    if found is None or any(each.looks for each in case.tallies.values()):
        return None
    is_ordinary = (
        found.reason in (reasons.NO_GPU, reasons.NO_DRIVER) and case.facts.driver_state != driver_states.FAILED
    )
    if is_ordinary and not case.facts.request.asked:
        return not_asked(case.facts)
    return _checked(_state(found.reason), found)


def _lost_unused(case: Case) -> Optional[Verdict]:
    """Before it was used: a leased device, or all that the script could see."""
    lost = [each for each in losses(case) if each.until is None and each.number in case.meant]
    leased = [each for each in lost if case.tallies[each.number].part.is_leased]
    if not leased and {each.number for each in lost} != set(case.meant):
        return None
    if not lost:
        return None
    first = (leased or lost)[0]
    part = case.tallies[first.number].part
    said = " (%s)" % first.problem.rstrip(".") if first.problem else ""
    detail = "%s was lost before it was used%s" % (phrases.device(part), said)
    return answer(NOT_AVAILABLE, reasons.LOST, blanks_of(case.facts)._replace(detail=detail))


def _unable(case: Case) -> Optional[Verdict]:
    return None if case.proof is None else _checked(NOT_USED, case.proof)


def _failed(case: Case) -> Optional[Verdict]:
    """The script reached the GPU, says its output, and failed there before a look saw it."""
    state, blanks = NOT_USED if _is_proved(case) else UNKNOWN, _blanks(case)
    held = [each for each in case.tallies.values() if each.held]
    if reasons.LOST in case.end.said and case.end.has_failed:
        return answer(state, reasons.said(reasons.LOST), blanks)
    if _is_exhausted(case.end, held):
        is_said = reasons.OUT_OF_MEMORY in case.end.said
        return answer(state, reasons.said(reasons.OUT_OF_MEMORY) if is_said else reasons.OUT_OF_MEMORY, blanks)
    return None


def _proved(case: Case) -> Optional[Verdict]:
    if not _is_proved(case):
        return None
    found = _reason(case)
    if case.end.left:
        return found._replace(sentence="%s After the end %s." % (found.sentence, _left_text(case.end.left)))
    return found


def _reason(case: Case) -> Verdict:
    meant = [case.tallies[number] for number in sorted(case.meant)]
    blanks = _blanks(case)._replace(looks=phrases.counted(max(each.looks for each in meant), "look"))
    failing = [each for each in unfit(case.facts) if each.is_fatal]
    failing.sort(key=lambda each: each.reason not in case.end.said)
    if failing:
        return _checked(NOT_USED, failing[0])
    said = [each for each in case.end.said if each in _NAMED_BY_OUTPUT]
    if said:
        return answer(NOT_USED, reasons.said(said[0]), blanks)
    for each in meant:
        if each.others_worked and each.others_worked >= _OFTEN * each.looks:
            shown = phrases.device(each.part)
            who = phrases.processes(sorted(each.others))
            detail = "%s, in %d of %d looks" % (who, each.others_worked, each.looks)
            blanks = blanks._replace(devices=shown, detail=detail)
            if each.part.is_leased:
                return answer(NOT_USED, reasons.JOINED, blanks)
            return answer(NOT_USED, reasons.STRANGER, blanks)
    holding = [each for each in meant if each.is_idle]
    if holding:
        return answer(NOT_USED, reasons.IDLE, blanks._replace(devices=_held(holding)))
    return answer(NOT_USED, reasons.UNTOUCHED, blanks)


def _unknown(case: Case) -> Verdict:
    facts, end, samples = case.facts, case.end, case.samples
    blanks = _blanks(case)._replace(looks=phrases.counted(len(case.during), "look"))
    seconds, is_seldom = case.ended - case.started, len(case.during) < FEWEST_LOOKS
    # Until then a driver that is slow to wake cannot be told from one that does not answer.
    is_brief = is_seldom and seconds < case.patience
    if facts.driver_state == driver_states.TIMED_OUT or (end.is_stalled and not is_brief):
        return answer(UNKNOWN, reasons.STALLED, blanks)
    if not end.is_known:
        return answer(UNKNOWN, reasons.SUPERVISOR_LOST, blanks)
    if samples.problem or (samples.began is None and not is_brief):
        why = ": " + samples.problem if samples.problem else ""
        remedy = reasons.WORDS[reasons.STALLED].remedy
        return worded(UNKNOWN, Cause(reasons.NOT_WATCHED, "the GPUs were not watched" + why, remedy))
    if is_seldom and seconds <= 2 * case.patience:
        said = [each for each in end.said if each in _NAMED_BY_OUTPUT]
        if said:
            return answer(UNKNOWN, reasons.said(said[0]), blanks)
        return answer(UNKNOWN, reasons.TOO_SHORT, blanks)
    if not case.is_whole:
        return _interrupted(case)
    meant = [case.tallies[number].part for number in case.meant]
    if any(each.mig for each in meant):
        return answer(UNKNOWN, reasons.INSTANCE, blanks)
    if any(each.is_leased for each in meant):
        return answer(UNKNOWN, reasons.LEASED, blanks)
    return answer(UNKNOWN, reasons.NO_ATTRIBUTION, blanks)


def _interrupted(case: Case) -> Verdict:
    """No looks for a part of the time. Where looks go on after that it was not the driver, unless the sampler had to
    leave looks out for it: while a machine sleeps none is due."""
    last = max((each.time for each in (*case.during[-1:], *case.after)), default=case.started)
    held = case.samples.skipped * period(case.ended - (case.samples.began or case.started))
    if case.ended - last > case.patience or held >= case.unwatched / 2:
        return answer(UNKNOWN, reasons.STALLED, blanks_of(case.facts))
    times = phrases.seconds(case.unwatched), phrases.seconds(case.ended - case.started)
    return worded(UNKNOWN, Cause(reasons.NOT_WATCHED, _UNSEEN % times, _AWAKE))


_NAMED_BY_OUTPUT = (
    *(reasons.NO_CODE, reasons.DRIVER_TOO_OLD, reasons.CPU_BUILD, reasons.WRONG_BUILD),
    *(reasons.NO_DRIVER, reasons.HIDDEN),
)


def _is_proved(case: Case) -> bool:
    lost = {each.number for each in losses(case) if each.until is None}
    meant = [case.tallies[number] for number in case.meant if number not in lost]
    return bool(meant) and all(is_proved_unused(case, each) for each in meant)


def _blanks(case: Case) -> Blanks:
    """With the devices that the run is judged by: of a machine with eight, those that it leased."""
    meant = [case.tallies[number].part for number in sorted(case.meant)]
    known = blanks_of(case.facts)
    return known._replace(devices=phrases.devices(meant) or known.devices)


def _refuses(found: Cause, facts: GpuFacts) -> bool:
    """Whether a run is not started for it. A run that leases waits for what passes, and is not refused for it."""
    request = facts.request
    if found.reason == reasons.TOO_FEW or found == missing(facts):
        return True
    return request.require and not (found.reason in _PASSING and request.is_leasing and not facts.leased)


def _state(reason: str) -> str:
    """Of a run that a failing check is the reason of."""
    return NOT_AVAILABLE if reason in _NOT_THERE else UNKNOWN if reason in _NOT_KNOWN else NOT_USED


def _checked(state: str, found: Cause) -> Verdict:
    """In the words of a check that failed."""
    return worded(state, found._replace(sentence=phrases.continued(found.sentence)))


def _held(found: List[Tally]) -> str:
    return phrases.listed(["%s, %s peak" % (phrases.device(each.part), phrases.memory(each.peak)) for each in found])
