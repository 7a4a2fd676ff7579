"""A run as it is judged: the looks at each device summed up, and what facts, samples and its end say together. Pure."""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from holdfast.farside.gpu import phrases
from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.gpu_facts import End, GpuFacts
from holdfast.farside.gpu.judge.checks import proof
from holdfast.farside.gpu.judge.evidence import (
    DEVICE,
    FEWEST_LOOKS,
    HELD,
    UNCLEAR,
    UNMEASURED,
    TimedLook,
    concerned,
    has_anonymous,
    is_attributed,
    is_on,
    looks,
    looks_after,
    parts,
    patience,
    work,
)
from holdfast.farside.gpu.judge.reasons import Cause, DeviceUse
from holdfast.farside.gpu.samples import Loss, Row, Samples

_FULL = 0.98
_GROWN = 64 << 20
"""Bytes of a device's memory that only a process that computes on it takes."""
_HELD_LOOKS, _BLIND_LOOKS = 5, 60
"""So many looks at memory that is held by a process that computes nothing are a proof of idleness; fewer are not. Where
the driver does not say what each process computes, a device that was idle in every look proves less."""
_LAST_LOOKS = 5
_MOMENT = 1.0


class Tally:
    """All looks at one device, summed up. Seconds are counted where it is known what it did."""

    def __init__(self, part: GpuDevice, started: float, attributed: bool) -> None:
        self.part, self._started, self._attributed = part, started, attributed
        self.looks = self.working = self.unknown = 0
        self.held = 0
        self.measured = self.blind = 0
        """Of those `held` while the script ran: with the driver's word that its processes computed nothing, and without
        it."""
        self.worked_seconds = self.known_seconds = 0.0
        self.peak: Optional[int] = None
        self.first: Optional[float] = None
        """When it was first used, in seconds after the start."""
        self.evidence: Set[str] = set()
        self.others_worked = 0
        self.others: Set[int] = set()
        self.has_anonymous = False
        """A process was on it whose owner is not known."""
        self.is_quiet = True
        """In every look it did nothing, no process was on it, and its memory did not grow."""
        self._judged, self._seconds, self._shares, self._weighted = 0, 0.0, 0.0, 0.0
        self._is_mean_known = True
        self._lowest = part.memory_used
        self._full = -_LAST_LOOKS

    @property
    def is_touched(self) -> bool:
        """A process of the run was on it."""
        return bool(self.evidence - {DEVICE})

    @property
    def is_idle(self) -> bool:
        """Held for so long without computing that it is a proof."""
        return not self.working and (self.measured >= _HELD_LOOKS or self.measured + self.blind >= _BLIND_LOOKS)

    @property
    def is_unmeasured(self) -> bool:
        """Held, and how much it computed is not known."""
        return bool(self.held) and not (self.working or self.measured or self.is_idle)

    @property
    def is_full(self) -> bool:
        """The last looks found no memory left, with a process of the run on it."""
        return self.looks - self._full < _LAST_LOOKS

    @property
    def mean(self) -> Optional[float]:
        """Per cent over the whole time; None where it is not known of a part of it."""
        if not self._is_mean_known or not self._judged or self.is_unmeasured:
            return None
        return self._weighted / self._seconds if self._seconds > 0 else self._shares / self._judged

    def take(self, row: Row, time: float, weight: float) -> int:
        """A look while the script ran, which stands for so many seconds."""
        self.looks += 1
        if row.own or row.others or row.unmatched:
            self._note_processes(row)
        if row.utilisation != 0:
            self.is_quiet = False
        if row.memory is not None:
            self._note_memory(row, row.memory)
        kind = self.judge(row, time, weight)
        if kind == HELD and row.own_utilisation is None:
            self.blind += 1
        elif kind == HELD:
            self.measured += 1
        return kind

    def judge(self, row: Row, time: float, weight: float) -> int:
        kind, evidence = work(row, self.part, self._attributed)
        self._judged += 1
        self._seconds += weight
        if kind == UNCLEAR:
            self.unknown += 1
            self._is_mean_known = False
            return kind
        self.known_seconds += weight
        if kind >= HELD:
            self.evidence.add(evidence)
            since = time - self._started
            if self.first is None or since < self.first:
                self.first = since
            self._note_use(row, kind, weight)
        return kind

    def _note_processes(self, row: Row) -> None:
        self.is_quiet = False
        if has_anonymous(row, self._attributed):
            self.has_anonymous = True
        if row.others and (row.utilisation or 0) >= 1 and not is_on(row):
            self.others_worked += 1
            self.others.update(row.others)

    def _note_memory(self, row: Row, memory: int) -> None:
        lowest = self._lowest
        if lowest is not None and memory > lowest + _GROWN:
            self.is_quiet = False  # a process took it that the driver does not name
        if lowest is None or memory < lowest:
            self._lowest = memory
        total = self.part.memory_total
        if total and memory >= _FULL * total and is_on(row):
            self._full = self.looks

    def _note_use(self, row: Row, kind: int, weight: float) -> None:
        memory = row.own_memory if is_on(row) else row.memory
        if memory is not None and (self.peak is None or memory > self.peak):
            self.peak = memory
        if kind == HELD:
            self.held += 1
            return
        self.working += 1
        self.worked_seconds += weight
        share = _share(row) if kind != UNMEASURED else None
        if share is None:
            self._is_mean_known = False
        else:
            self._shares += share
            self._weighted += share * weight


def _share(row: Row) -> Optional[float]:
    """Of the time of a device that works, what the run had, in per cent."""
    if (row.own_utilisation or 0) >= 1:
        return float(row.own_utilisation or 0)
    return None if row.others or row.utilisation is None else float(row.utilisation)


def use_of(found: Tally, is_used: bool) -> DeviceUse:
    """Who only held memory has not used it: `is_used` is what the verdict says of the device."""
    part, known = found.part, found.known_seconds
    busy = min(1.0, found.worked_seconds / known) if known > 0 else None
    first = None if found.first is None or not is_used else max(0.0, found.first)
    return DeviceUse(part.number, part.uuid, part.name, found.mean, found.peak, first, busy, part.is_leased)


def described(use: DeviceUse) -> str:
    """`Tesla K80 (GPU-8932f937), 74 % mean, 8.2 GiB peak, first use after 4 s`."""
    shown = [phrases.named(use.name, use.uuid, use.number)]
    if use.first_use is None:
        return shown[0] + ", not used"
    if use.mean is not None:
        shown.append("%s mean" % phrases.share(use.mean / 100))
    if use.peak_memory is not None:
        shown.append("%s peak" % phrases.memory(use.peak_memory))
    return ", ".join([*shown, "first use after %s" % phrases.seconds(use.first_use)])


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
    proof: Optional[Cause]

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
    tallies = {number: Tally(part, started, attributed) for number, part in sorted(known.items())}
    kinds = {number: bytearray(len(during)) for number in tallies}
    for place, look in enumerate(during):
        time, weight = look.time, look.weight
        for row in look.rows:
            tally = tallies.get(row.number)
            if tally is not None:
                kinds[row.number][place] = tally.take(row, time, weight)
    for look in after:
        for row in look.rows:
            if row.number in tallies and is_on(row):  # then only processes of the run itself count
                tallies[row.number].judge(row, look.time, 0.0)
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
        each for each in case.tallies.values() if each.working and (each.evidence != {DEVICE} or case.proof is None)
    ]
    failed = case.proof is not None and case.end.has_failed and case.proof.reason in case.end.said
    holding = [each for each in case.tallies.values() if each.held and not each.working and not failed]
    if any(each.is_idle for each in holding):
        holding = [each for each in holding if working and not each.is_idle]
    return sorted(working + holding, key=lambda each: each.part.number)


def is_proved_unused(case: Case, found: Tally) -> bool:
    """Whether it is proved that the device did not compute for the run."""
    if not case.is_whole or found.looks < FEWEST_LOOKS or found.working or found.unknown or found.has_anonymous:
        return False
    return case.is_attributed or found.is_quiet


def losses(case: Case) -> List[Loss]:
    """Devices that were lost while the script ran. One that came back is no fault of a run that went well."""
    return [
        each
        for each in case.samples.losses
        if each.time <= case.ended + _MOMENT and (each.until is None or each.until >= case.started)
        if each.until is None or case.end.code != 0
    ]
