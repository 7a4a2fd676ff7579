"""What can be answered to the question whether a run used the GPUs. Pure."""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from holdfast.farside.gpu import phrases
from holdfast.farside.gpu.gpu_facts import End, GpuFacts
from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.checks import Check, proof
from holdfast.farside.gpu.judge.evidence import (
    DEVICE,
    FEWEST_LOOKS,
    Tally,
    TimedLook,
    concerned,
    course,
    is_attributed,
    is_unused,
    looks,
    looks_after,
    parts,
    patience,
)
from holdfast.farside.gpu.judge.reasons import Blanks, Occasion
from holdfast.farside.gpu.samples import Loss, Samples

USED, PARTLY_USED, NOT_USED = "used", "partly-used", "not-used"
NOT_ASKED, NOT_AVAILABLE, UNKNOWN = "not-asked", "not-available", "unknown"
STATES = (USED, PARTLY_USED, NOT_USED, NOT_ASKED, NOT_AVAILABLE, UNKNOWN)
PREFIXES = {
    USED: "GPU used: ",
    PARTLY_USED: "GPU partly used: ",
    NOT_USED: "GPU NOT used: ",
    NOT_ASKED: "GPU not asked for",
    NOT_AVAILABLE: "GPU not available: ",
    UNKNOWN: "GPU use unknown: ",
}


class Use(NamedTuple):
    """Of one device: per cent over the script's time, bytes, seconds after its start, and the share of its time in
    which the device computed for it."""

    number: int
    uuid: str
    name: str
    mean: Optional[float]
    peak_memory: Optional[int]
    first_use: Optional[float]
    busy: Optional[float]
    is_leased: bool


class Answer(NamedTuple):
    """`sentence` is whole, as it is shown."""

    state: str
    reason: str
    sentence: str
    remedy: str


def answer(state: str, reason: str, blanks: Blanks, is_said: bool = False) -> Answer:
    """With the reason's own words. `is_said`: they are known from the output."""
    return worded(state, reason, *reasons.words(reason, blanks, is_said))


def answer_on(state: str, occasion: Occasion, blanks: Blanks) -> Answer:
    """With the words for an occasion."""
    return worded(state, occasion.reason, *reasons.filled(occasion.words, blanks))


def worded(state: str, reason: str, sentence: str, remedy: str) -> Answer:
    shown = PREFIXES[state] + sentence
    return Answer(state, reason, shown if reason == reasons.OK else shown.rstrip(". ") + ".", remedy)


def checked(state: str, found: Check) -> Answer:
    """In the words of a check that failed."""
    return worded(state, found.reason, phrases.continued(found.sentence), found.remedy)


def use_of(found: Tally, is_used: bool) -> Use:
    """Who only held memory has not used it: `is_used` is what the verdict says of the device."""
    part, known = found.part, found.known_seconds
    busy = min(1.0, found.worked_seconds / known) if known > 0 else None
    first = None if found.first is None or not is_used else max(0.0, found.first)
    return Use(part.number, part.uuid, part.name, found.mean, found.peak, first, busy, part.is_leased)


def described(use: Use) -> str:
    """`Tesla K80 (GPU-8932f937), 74 % mean, 8.2 GiB peak, first use after 4 s`."""
    shown = [phrases.named(use.name, use.uuid, use.number)]
    if use.first_use is None:
        return shown[0] + ", not used"
    if use.mean is not None:
        shown.append("%s mean" % phrases.share(use.mean / 100))
    if use.peak_memory is not None:
        shown.append("%s peak" % phrases.memory(use.peak_memory))
    return ", ".join([*shown, "first use after %s" % phrases.seconds(use.first_use)])


_MOMENT = 1.0


class Case(NamedTuple):
    """`meant` are the numbers of the devices that the run is judged by. `proof`: what it was given proves that it could
    not use one. `kinds`: what each device did, look by look. `patience`: seconds without a look that are nothing
    unusual; `unwatched`: those of the script's time of which no look tells."""

    facts: GpuFacts
    end: End
    samples: Samples
    started: float
    ended: float
    during: Tuple[TimedLook, ...]
    after: Tuple[TimedLook, ...]
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


def weigh(facts: GpuFacts, end: End, samples: Samples, started: float) -> Case:
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
