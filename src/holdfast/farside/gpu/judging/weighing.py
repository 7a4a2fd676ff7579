"""All that is known of one run that has ended, put together to be judged. Pure."""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from holdfast.farside.gpu.judging.checks import Check, proof
from holdfast.farside.gpu.judging.evidence import (
    DEVICE,
    FEWEST_LOOKS,
    Look,
    concerned,
    is_attributed,
    looks,
    looks_after,
    parts,
    patience,
)
from holdfast.farside.gpu.judging.facts import End, Facts
from holdfast.farside.gpu.judging.tallies import Tally, course, is_unused
from holdfast.farside.gpu.watching.samples import Loss, Samples

_MOMENT = 1.0


class Case(NamedTuple):
    """`meant` are the numbers of the devices that the run is judged by. `proof`: what it was given proves that it could
    not use one. `kinds`: what each device did, look by look. `patience`: seconds without a look that are nothing
    unusual; `unwatched`: those of the script's time of which no look tells."""

    facts: Facts
    end: End
    samples: Samples
    started: float
    ended: float
    during: Tuple[Look, ...]
    after: Tuple[Look, ...]
    tallies: Dict[int, Tally]
    kinds: Dict[int, bytearray]
    meant: FrozenSet[int]
    is_attributed: bool
    patience: float
    unwatched: float
    proof: Optional[Check]

    @property
    def is_whole(self) -> bool:
        """Whether the script was watched until its end, without a gap in which it could have worked unseen."""
        if len(self.during) < FEWEST_LOOKS or self.end.is_stalled:
            return False
        tail = self.ended - self.during[-1].until
        gaps = self.unwatched - min(tail, self.patience)
        return tail <= self.patience and gaps <= max(self.patience, 0.1 * (self.ended - self.started))


def weigh(facts: Facts, end: End, samples: Samples, started: float) -> Case:
    ended = max(started, end.ended)
    known = parts(facts, samples)
    during, after = looks(samples, started, ended), looks_after(samples, ended)
    attributed = is_attributed(during, facts)
    tallies, kinds = course(known, started, during, after, attributed)
    return Case(
        facts=facts,
        end=end,
        samples=samples,
        started=started,
        ended=ended,
        during=during,
        after=after,
        tallies=tallies,
        kinds=kinds,
        meant=concerned(facts, known),
        is_attributed=attributed,
        patience=patience(samples, started, ended),
        unwatched=(ended - started) - sum(each.weight for each in during),
        proof=proof(facts, end.said, any(each.is_touched for each in tallies.values())),
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
    if any(each.is_idle for each in holding):
        holding = [each for each in holding if working and not each.is_idle]
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
