"""All that is known of one run that has ended, put together to be judged. Pure."""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from holdfast.farside.gpu.judging.checks import Check, proof
from holdfast.farside.gpu.judging.evidence import (
    DEVICE,
    Look,
    Tally,
    concerned,
    is_attributed,
    is_unused,
    is_whole,
    looks,
    parts,
    tally,
)
from holdfast.farside.gpu.judging.facts import End, Facts
from holdfast.farside.gpu.watching.samples import Loss, Samples

HELD_LOOKS = 5
"""So many looks at memory that is held by a process that computes nothing are a proof of idleness; fewer are not."""
_MOMENT = 1.0


class Case(NamedTuple):
    """`meant` are the numbers of the devices that the run is judged by. `proof`: what it was given proves that it could
    not use one."""

    facts: Facts
    end: End
    samples: Samples
    started: float
    ended: float
    during: Tuple[Look, ...]
    tallies: Dict[int, Tally]
    meant: FrozenSet[int]
    is_attributed: bool
    is_whole: bool
    proof: Optional[Check]


def weigh(facts: Facts, end: End, samples: Samples, started: float) -> Case:
    ended = max(started, end.ended)
    known = parts(facts, samples)
    during = looks(samples, started, ended)
    after = [
        Look(tick.time, tick.time, {row.number: row for row in tick.rows})
        for tick in samples.ticks
        if tick.time > ended
    ]
    return Case(
        facts=facts,
        end=end,
        samples=samples,
        started=started,
        ended=ended,
        during=during,
        tallies={number: tally(part, during, after, started) for number, part in sorted(known.items())},
        meant=concerned(facts, known),
        is_attributed=is_attributed(during),
        is_whole=is_whole(during, samples, started, ended) and not end.is_stalled,
        proof=proof(facts, end.said),
    )


def users(case: Case) -> List[Tally]:
    """The devices that are known to have been used. That a device worked which was the run's alone is no proof against
    a script that could not use it, and memory that was held for a moment is none where it failed with just that."""
    working = [
        each
        for each in case.tallies.values()
        if each.working and (each.evidence != frozenset([DEVICE]) or case.proof is None)
    ]
    failed = case.proof is not None and case.end.has_failed and case.proof.reason in case.end.said
    holding = [each for each in case.tallies.values() if each.held and not each.working and not failed]
    if any(each.held >= HELD_LOOKS for each in holding):
        holding = [each for each in holding if working and each.held < HELD_LOOKS]
    return sorted(working + holding, key=lambda each: each.part.number)


def is_proved_unused(case: Case, found: Tally) -> bool:
    return case.is_whole and is_unused(found, case.is_attributed)


def losses(case: Case) -> List[Loss]:
    """Devices that were lost while the script ran. One that came back is no fault of a run that went well."""
    return [
        each
        for each in case.samples.losses
        if each.time <= case.ended + _MOMENT and (each.until is None or each.until >= case.started)
        if each.until is None or case.end.code != 0
    ]
