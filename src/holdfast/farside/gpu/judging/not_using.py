"""What is said of a run that is not known to have used a GPU though it was meant to: not used, where that is proved and
why; not available; or unknown. Pure."""

from typing import List, Optional

from holdfast.farside.gpu.judging import occasions, reasons, telling
from holdfast.farside.gpu.judging.answer import (
    NOT_ASKED,
    NOT_AVAILABLE,
    NOT_USED,
    UNKNOWN,
    Answer,
    answer,
    answer_on,
    checked,
    worded,
)
from holdfast.farside.gpu.judging.checks import Check, blanks_of, check, missing, unfit
from holdfast.farside.gpu.judging.evidence import FEWEST_LOOKS
from holdfast.farside.gpu.judging.facts import End, Facts
from holdfast.farside.gpu.judging.reasons import Blanks
from holdfast.farside.gpu.judging.tallies import Tally
from holdfast.farside.gpu.judging.using import is_exhausted, left_text
from holdfast.farside.gpu.judging.weighing import Case, is_proved_unused, losses
from holdfast.farside.gpu.watching.samples import period
from holdfast.farside.machine import gpus

_PASSING = (reasons.STRANGER, reasons.OUT_OF_MEMORY)
"""Before the start: what a run that is to lease a GPU waits for."""
_NOT_THERE = (reasons.NO_GPU, reasons.TOO_FEW, reasons.NO_DRIVER, reasons.LOST, *_PASSING)
_NOT_KNOWN = (reasons.STALLED, reasons.NOT_WATCHED)
_OFTEN = 0.2
"""Share of the looks in which others worked on a device: less has kept nobody from it."""

_UNSEEN = "nobody looked for %s of the %s that the script ran, as where the machine sleeps or its clock is set"
_AWAKE = "Keep the machine from sleeping while a script runs; where it did not sleep, look at its load and its clock."


def not_asked(facts: Facts) -> Answer:
    return answer(NOT_ASKED, reasons.NOT_ASKED, blanks_of(facts))


def never_started(facts: Facts, end: End) -> Answer:
    """Refused, stopped or failed before its script was there. Where it was refused for a GPU, or the machine has none:
    that. What merely speaks against a GPU was not why it did not start."""
    if not facts.request.asked:
        return not_asked(facts)
    for each in check(facts):
        state = _state(each.reason)
        is_ours = each == missing(facts) if end.is_stopped else _refuses(each, facts)
        if each.is_fatal and is_ours and not (end.is_stopped and state == UNKNOWN):
            return checked(state, each)
    return answer(UNKNOWN, reasons.INTERRUPTED, blanks_of(facts))


def not_used(case: Case) -> Answer:
    for judge in (_unavailable, _lost, _unable, _failed, _proved):
        found = judge(case)
        if found is not None:
            return found
    return _unknown(case)


def _unavailable(case: Case) -> Optional[Answer]:
    """A machine without a GPU is no fault of a run that did not ask for one."""
    found = missing(case.facts)
    if found is None or any(each.looks for each in case.tallies.values()):
        return None
    is_ordinary = found.reason in (reasons.NO_GPU, reasons.NO_DRIVER) and case.facts.driver_state != gpus.FAILED
    if is_ordinary and not case.facts.request.asked:
        return not_asked(case.facts)
    return checked(_state(found.reason), found)


def _lost(case: Case) -> Optional[Answer]:
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
    detail = "%s was lost before it was used%s" % (telling.named(part.name, part.uuid, part.number), said)
    return answer(NOT_AVAILABLE, reasons.LOST, blanks_of(case.facts)._replace(detail=detail))


def _unable(case: Case) -> Optional[Answer]:
    return None if case.proof is None else checked(NOT_USED, case.proof)


def _failed(case: Case) -> Optional[Answer]:
    """The script reached the GPU, says its output, and failed there before anybody saw it."""
    state, blanks = NOT_USED if _is_proved(case) else UNKNOWN, _blanks(case)
    held = [each for each in case.tallies.values() if each.held]
    if reasons.LOST in case.end.said and case.end.has_failed:
        return answer(state, reasons.LOST, blanks, is_said=True)
    if is_exhausted(case.end, held):
        return answer(state, reasons.OUT_OF_MEMORY, blanks, reasons.OUT_OF_MEMORY in case.end.said)
    return None


def _proved(case: Case) -> Optional[Answer]:
    if not _is_proved(case):
        return None
    found = _reason(case)
    if case.end.left:
        return found._replace(sentence="%s After the end %s." % (found.sentence, left_text(case.end.left)))
    return found


def _reason(case: Case) -> Answer:
    meant = [case.tallies[number] for number in sorted(case.meant)]
    blanks = _blanks(case)._replace(looks=telling.counted(max(each.looks for each in meant), "look"))
    failing = [each for each in unfit(case.facts) if each.is_fatal]
    failing.sort(key=lambda each: each.reason not in case.end.said)
    if failing:
        return checked(NOT_USED, failing[0])
    said = [each for each in case.end.said if each in _NAMED_BY_OUTPUT]
    if said:
        return answer(NOT_USED, said[0], blanks, is_said=True)
    for each in meant:
        if each.others_worked and each.others_worked >= _OFTEN * each.looks:
            shown = telling.named(each.part.name, each.part.uuid, each.part.number)
            who = telling.processes(sorted(each.others))
            detail = "%s, in %d of %d looks" % (who, each.others_worked, each.looks)
            blanks = blanks._replace(devices=shown, detail=detail)
            if each.part.is_leased:
                return answer_on(NOT_USED, occasions.JOINED, blanks)
            return answer(NOT_USED, reasons.STRANGER, blanks)
    holding = [each for each in meant if each.is_idle]
    if holding:
        return answer(NOT_USED, reasons.IDLE, blanks._replace(devices=_held(holding)))
    return answer(NOT_USED, reasons.UNTOUCHED, blanks)


def _unknown(case: Case) -> Answer:
    facts, end, samples = case.facts, case.end, case.samples
    blanks = _blanks(case)._replace(looks=telling.counted(len(case.during), "look"))
    seconds, is_seldom = case.ended - case.started, len(case.during) < FEWEST_LOOKS
    # Until then a driver that is slow to wake cannot be told from one that does not answer.
    is_brief = is_seldom and seconds < case.patience
    if facts.driver_state == gpus.TIMED_OUT or (end.is_stalled and not is_brief):
        return answer(UNKNOWN, reasons.STALLED, blanks)
    if not end.is_known:
        return answer(UNKNOWN, reasons.SUPERVISOR_LOST, blanks)
    if samples.problem or (samples.began is None and not is_brief):
        why = ": " + samples.problem if samples.problem else ""
        remedy = reasons.words(reasons.STALLED, blanks).remedy
        return worded(UNKNOWN, reasons.NOT_WATCHED, "the GPUs were not watched" + why, remedy)
    if is_seldom and seconds <= 2 * case.patience:
        said = [each for each in end.said if each in _NAMED_BY_OUTPUT]
        if said:
            return answer(UNKNOWN, said[0], blanks, is_said=True)
        return answer(UNKNOWN, reasons.TOO_SHORT, blanks)
    if not case.is_whole:
        return _interrupted(case)
    meant = [case.tallies[number].part for number in case.meant]
    if any(each.mig for each in meant):
        return answer_on(UNKNOWN, occasions.INSTANCE, blanks)
    if any(each.is_leased for each in meant):
        return answer_on(UNKNOWN, occasions.LEASED, blanks)
    return answer(UNKNOWN, reasons.NO_ATTRIBUTION, blanks)


def _interrupted(case: Case) -> Answer:
    """Nobody looked for a part of the time. Where looks go on after that it was not the driver, unless the sampler had
    to leave looks out for it: while a machine sleeps none is due."""
    last = max((each.time for each in (*case.during[-1:], *case.after)), default=case.started)
    held = case.samples.skipped * period(case.ended - (case.samples.began or case.started))
    if case.ended - last > case.patience or held >= case.unwatched / 2:
        return answer(UNKNOWN, reasons.STALLED, blanks_of(case.facts))
    times = telling.seconds(case.unwatched), telling.seconds(case.ended - case.started)
    return worded(UNKNOWN, reasons.NOT_WATCHED, _UNSEEN % times, _AWAKE)


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
    return known._replace(
        devices=telling.listed([telling.named(each.name, each.uuid, each.number) for each in meant]) or known.devices
    )


def _refuses(found: Check, facts: Facts) -> bool:
    """Whether a run is not started for it. Who leases waits for what passes, and nobody is refused for it then."""
    request = facts.request
    if found.reason == reasons.TOO_FEW or found == missing(facts):
        return True
    return request.require and not (found.reason in _PASSING and request.is_leasing and not facts.leased)


def _state(reason: str) -> str:
    """Of a run that a failing check is the reason of."""
    return NOT_AVAILABLE if reason in _NOT_THERE else UNKNOWN if reason in _NOT_KNOWN else NOT_USED


def _held(found: List[Tally]) -> str:
    return telling.listed(
        [
            "%s, %s peak" % (telling.named(each.part.name, each.part.uuid, each.part.number), telling.memory(each.peak))
            for each in found
        ]
    )
