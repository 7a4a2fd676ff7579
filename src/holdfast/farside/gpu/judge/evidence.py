"""What one look at a device proves about the run: what the device did for it then, and by which evidence. Pure.

From strongest to weakest: the run's processes computed; they had memory on a device that worked; a device that was the
run's alone worked. A time without looks says nothing, neither of work nor of its absence.
"""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from holdfast.farside.gpu.devices import NAMED, GpuDevice
from holdfast.farside.gpu.gpu_facts import GpuFacts, seen
from holdfast.farside.gpu.samples import Row, Samples, period

ABSENT, UNCLEAR, WAITING, HELD, UNMEASURED, WORKING = range(6)
"""What a device did for the run in a look: it was not looked at; not known; nothing; its memory was held and it
did not compute; its memory was held and how much it computed is not known; it computed. Numbers, because there are
hundreds of thousands of them."""
UTILISATION, MEMORY, DEVICE = "utilisation", "memory", "device"
LADDER = (UTILISATION, MEMORY, DEVICE)
FEWEST_LOOKS = 3
_REGULAR = 2.5
"""Periods between looks that are no gap."""
CONTEXT = 32 << 20
"""Bytes: a process that computes on a device has at least so many of its memory."""


class TimedLook(NamedTuple):
    """One look while the script ran, and the time that it stands for: what passed since the one before, and for the
    last of them also what the script still ran."""

    since: float
    time: float
    until: float
    rows: Tuple[Row, ...]

    @property
    def weight(self) -> float:
        return self.until - self.since


def parts(facts: GpuFacts, samples: Samples) -> Dict[int, GpuDevice]:
    """Devices that can be watched, by their numbers. Another source than NVML has numbers of its own."""
    is_same = samples.source in ("", "nvml")
    known = [each for each in facts.devices if each.state != NAMED and is_same]
    found = {each.number: each for each in (*samples.devices, *known)}
    return {number: each._replace(is_leased=facts.leases(each)) for number, each in found.items()}


def concerned(facts: GpuFacts, known: Dict[int, GpuDevice]) -> FrozenSet[int]:
    """The numbers of the devices that the run is judged by: what it leased, else what it could see, else all."""
    leased = frozenset(each.number for each in known.values() if each.is_leased)
    visible = frozenset(each.number for each in seen(facts) if each.state != NAMED and each.number in known)
    return leased or visible or frozenset(known)


def looks(samples: Samples, started: float, ended: float) -> Tuple[TimedLook, ...]:
    """Those while the script ran, in order. After a gap a look stands for one period only."""
    found: List[TimedLook] = []
    began = started if samples.began is None else samples.began
    last = started
    for tick in sorted(samples.ticks, key=lambda each: each.time):
        if not started <= tick.time <= ended:
            continue
        usual = period(tick.time - began)
        since = last if tick.time - last <= _REGULAR * usual else tick.time - usual
        found.append(TimedLook(since, tick.time, tick.time, _once(tick.rows)))
        last = tick.time
    if found and ended - last <= _REGULAR * period(last - began):
        found[-1] = found[-1]._replace(until=ended)
    return tuple(found)


def looks_after(samples: Samples, ended: float) -> Tuple[TimedLook, ...]:
    """They stand for no time of the script's."""
    return tuple(
        TimedLook(tick.time, tick.time, tick.time, _once(tick.rows)) for tick in samples.ticks if tick.time > ended
    )


def patience(samples: Samples, started: float, now: float) -> float:
    """Seconds without a look that are nothing unusual."""
    return max(5.0, 3 * period(now - (started if samples.began is None else samples.began)))


def is_attributed(found: Sequence[TimedLook], facts: GpuFacts) -> bool:
    """Whether the processes that the driver names are known to be those that are seen here. Its numbers are the
    machine's: where this is a container with numbers of its own, one that is there too may be any process."""
    trusts = facts.has_machine_pids
    for each in found:
        for row in each.rows:
            if row.own or (trusts and row.others):
                return True
    return False


def work(row: Row, part: GpuDevice, attributed: bool) -> Tuple[int, str]:
    """What a device did for the run, and by which evidence."""
    own = row.own_utilisation
    if own is not None and own >= 1:
        return WORKING, UTILISATION
    if is_on(row):
        return _own_work(row)
    if row.utilisation == 0:
        return WAITING, ""
    is_strange, is_anonymous = bool(row.others and attributed), has_anonymous(row, attributed)
    if part.is_leased and not part.strangers and not row.others and row.utilisation is not None:
        return _work_alone(row, part, is_anonymous)
    if row.utilisation is None and not attributed:
        return UNCLEAR, ""
    if is_anonymous or (row.utilisation is not None and not is_strange):
        return UNCLEAR, ""
    return WAITING, ""


def is_on(row: Row) -> bool:
    """Whether a process of the run is on the device."""
    return bool(row.own) or (row.own_memory or 0) > 0


def has_anonymous(row: Row, attributed: bool) -> bool:
    """Whether a process is on the device whose owner is not known."""
    return bool(row.unmatched) or bool(row.others and not attributed)


def _once(rows: Tuple[Row, ...]) -> Tuple[Row, ...]:
    """Each device once, which it is wherever nothing is damaged."""
    found = {row.number: row for row in rows}
    return rows if len(found) == len(rows) else tuple(found.values())


def _own_work(row: Row) -> Tuple[int, str]:
    """Of a device that a process of the run is on, which is not known to compute itself."""
    if row.utilisation is None:
        return (UNMEASURED, MEMORY) if row.own_utilisation is None else (HELD, MEMORY)
    if row.utilisation >= 1 and (row.own_utilisation is None or not (row.others or row.unmatched)):
        return WORKING, MEMORY
    return HELD, MEMORY


def _work_alone(row: Row, part: GpuDevice, is_anonymous: bool) -> Tuple[int, str]:
    """Of a leased device that works while the run's processes are not named on it: it is the run that computes, unless
    no memory is in use that was not before, as where a screen is drawn."""
    before = part.memory_used
    if is_anonymous or row.memory is None or before is None or row.memory >= before + CONTEXT:
        return WORKING, DEVICE
    return WAITING, ""


FULL = 0.98
GROWN = 64 << 20
"""Bytes of a device's memory that only a process that computes on it takes."""
HELD_LOOKS, BLIND_LOOKS = 5, 60
"""So many looks at memory that is held by a process that computes nothing are a proof of idleness; fewer are not. Where
the driver does not say what each process computes, a device that was idle in every look proves less."""
_LAST_LOOKS = 5


class Tally(NamedTuple):
    """All looks at one device. Seconds are counted where it is known what it did."""

    part: GpuDevice
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
    """A process was on it whose owner is not known."""
    is_quiet: bool
    """In every look it did nothing, no process was on it, and its memory did not grow."""
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


class _Course(NamedTuple):
    """`kinds`: what each device did for the run, a byte for each look, by its number."""

    tallies: Dict[int, Tally]
    kinds: Dict[int, bytearray]


def course(
    parts: Dict[int, GpuDevice],
    started: float,
    during: Sequence[TimedLook],
    after: Sequence[TimedLook],
    attributed: bool,
) -> _Course:
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
    return _Course({number: count.tally(started) for number, count in counts.items()}, kinds)


def is_unused(found: Tally, attributed: bool) -> bool:
    """Whether it is proved that the device did not compute for the run."""
    if found.looks < FEWEST_LOOKS or found.working or found.unknown or found.has_anonymous:
        return False
    return attributed or found.is_quiet


class _Count:
    """Of one device, while its looks are gone through."""

    def __init__(self, part: GpuDevice, attributed: bool) -> None:
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
        self._lowest = part.memory_used
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
        if kind == UNCLEAR:
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
            self._is_quiet = False  # a process took it that the driver does not name
        if lowest is None or memory < lowest:
            self._lowest = memory
        total = self._part.memory_total
        if total and memory >= FULL * total and is_on(row):
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
