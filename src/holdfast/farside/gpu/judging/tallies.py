"""All looks at the devices, counted: what each did for the run, in one pass however long it ran. Pure."""

from typing import Dict, FrozenSet, NamedTuple, Optional, Sequence, Set

from holdfast.farside.gpu.judging.evidence import (
    DEVICE,
    FEWEST_LOOKS,
    HELD,
    UNKNOWN,
    UNMEASURED,
    Look,
    Part,
    has_anonymous,
    is_on,
    work,
)
from holdfast.farside.gpu.watching.samples import Row

FULL = 0.98
GROWN = 64 << 20
"""Bytes of a device's memory that nobody takes who does not compute on it."""
HELD_LOOKS, BLIND_LOOKS = 5, 60
"""So many looks at memory that is held by a process that computes nothing are a proof of idleness; fewer are not. Where
the driver does not say what each process computes, a device that was idle whenever somebody looked proves less."""
_LAST_LOOKS = 5


class Tally(NamedTuple):
    """All looks at one device. Seconds are counted where it is known what it did."""

    part: Part
    looks: int
    working: int
    held: int
    measured: int
    """Of those `held`, while the script ran: with the driver's word that its processes computed nothing; and `blind`:
    without it."""
    blind: int
    unknown: int
    worked_seconds: float
    known_seconds: float
    mean: Optional[float]
    peak: Optional[int]
    first: Optional[float]
    """When it was first used, in seconds after the start."""
    evidence: FrozenSet[str]
    others_worked: int
    others: FrozenSet[int]
    has_anonymous: bool
    """A process was on it of which nobody can say whose it is."""
    is_quiet: bool
    """In every look it did nothing for anybody, nobody was on it, and its memory did not grow."""
    is_full: bool
    """The last looks found no memory left, with a process of the run on it."""

    @property
    def is_touched(self) -> bool:
        """A process of the run was on it."""
        return bool(self.evidence - {DEVICE})

    @property
    def is_idle(self) -> bool:
        """Held for so long without computing that it is a proof."""
        return not self.working and (self.measured >= HELD_LOOKS or self.measured + self.blind >= BLIND_LOOKS)

    @property
    def is_unmeasured(self) -> bool:
        """Held, and how much it computed is not known."""
        return bool(self.held) and not (self.working or self.measured or self.is_idle)


class Course(NamedTuple):
    """`kinds`: what each device did for the run, a byte for each look, by its number."""

    tallies: Dict[int, Tally]
    kinds: Dict[int, bytearray]


def course(
    parts: Dict[int, Part], started: float, during: Sequence[Look], after: Sequence[Look], attributed: bool
) -> Course:
    """`after`: looks after the end, where only processes of the run itself count."""
    counts = {number: _Count(part, attributed) for number, part in sorted(parts.items())}
    kinds = {number: bytearray(len(during)) for number in counts}
    for place, look in enumerate(during):
        time, weight = look.time, look.weight
        for row in look.rows:
            count = counts.get(row.number)
            if count is not None:
                kinds[row.number][place] = count.take(row, time, weight)
    for look in after:
        for row in look.rows:
            if row.number in counts and is_on(row):
                counts[row.number].judge(row, look.time, 0.0)
    return Course({number: count.tally(started) for number, count in counts.items()}, kinds)


def is_unused(found: Tally, attributed: bool) -> bool:
    """Whether it is proved that the device did not compute for the run."""
    if found.looks < FEWEST_LOOKS or found.working or found.unknown or found.has_anonymous:
        return False
    return attributed or found.is_quiet


class _Count:
    """Of one device, while its looks are gone through."""

    def __init__(self, part: Part, attributed: bool) -> None:
        self._part, self._attributed = part, attributed
        self._looks = self._judged = self._working = self._unknown = 0
        self._held = self._measured = self._blind = 0
        self._worked_seconds = self._known_seconds = self._seconds = 0.0
        self._shares = self._weighted = 0.0
        self._is_mean_known = True
        self._peak: Optional[int] = None
        self._first: Optional[float] = None
        self._evidence: Set[str] = set()
        self._others_worked = 0
        self._others: Set[int] = set()
        self._has_anonymous, self._is_quiet = False, True
        self._lowest = part.before
        self._full = -_LAST_LOOKS

    def take(self, row: Row, time: float, weight: float) -> int:
        """A look while the script ran, which stands for so many seconds."""
        self._looks += 1
        if row.own or row.others or row.unmatched:
            self._note_processes(row)
        if row.utilisation != 0:
            self._is_quiet = False
        if row.memory is not None:
            self._note_memory(row, row.memory)
        kind = self.judge(row, time, weight)
        if kind == HELD and row.own_utilisation is None:
            self._blind += 1
        elif kind == HELD:
            self._measured += 1
        return kind

    def judge(self, row: Row, time: float, weight: float) -> int:
        kind, evidence = work(row, self._part, self._attributed)
        self._judged += 1
        self._seconds += weight
        if kind == UNKNOWN:
            self._unknown += 1
            self._is_mean_known = False
            return kind
        self._known_seconds += weight
        if kind >= HELD:
            self._evidence.add(evidence)
            if self._first is None or time < self._first:
                self._first = time
            self._note_use(row, kind, weight)
        return kind

    def tally(self, started: float) -> Tally:
        found = Tally(
            part=self._part,
            looks=self._looks,
            working=self._working,
            held=self._held,
            measured=self._measured,
            blind=self._blind,
            unknown=self._unknown,
            worked_seconds=self._worked_seconds,
            known_seconds=self._known_seconds,
            mean=self._mean(),
            peak=self._peak,
            first=None if self._first is None else self._first - started,
            evidence=frozenset(self._evidence),
            others_worked=self._others_worked,
            others=frozenset(self._others),
            has_anonymous=self._has_anonymous,
            is_quiet=self._is_quiet,
            is_full=self._looks - self._full < _LAST_LOOKS,
        )
        return found._replace(mean=None) if found.is_unmeasured else found

    def _note_processes(self, row: Row) -> None:
        self._is_quiet = False
        if has_anonymous(row, self._attributed):
            self._has_anonymous = True
        if row.others and (row.utilisation or 0) >= 1 and not is_on(row):
            self._others_worked += 1
            self._others.update(row.others)

    def _note_memory(self, row: Row, memory: int) -> None:
        lowest = self._lowest
        if lowest is not None and memory > lowest + GROWN:
            self._is_quiet = False  # somebody took it whom the driver does not name
        if lowest is None or memory < lowest:
            self._lowest = memory
        if self._part.total and memory >= FULL * self._part.total and is_on(row):
            self._full = self._looks

    def _note_use(self, row: Row, kind: int, weight: float) -> None:
        memory = row.own_memory if is_on(row) else row.memory
        if memory is not None and (self._peak is None or memory > self._peak):
            self._peak = memory
        if kind == HELD:
            self._held += 1
            return
        self._working += 1
        self._worked_seconds += weight
        share = _share(row) if kind != UNMEASURED else None
        if share is None:
            self._is_mean_known = False
        else:
            self._shares += share
            self._weighted += share * weight

    def _mean(self) -> Optional[float]:
        """Per cent over the whole time; None where it is not known of a part of it."""
        if not self._is_mean_known or not self._judged:
            return None
        return self._weighted / self._seconds if self._seconds > 0 else self._shares / self._judged


def _share(row: Row) -> Optional[float]:
    """Of the time of a device that works, what the run had, in per cent."""
    if (row.own_utilisation or 0) >= 1:
        return float(row.own_utilisation or 0)
    return None if row.others or row.utilisation is None else float(row.utilisation)
