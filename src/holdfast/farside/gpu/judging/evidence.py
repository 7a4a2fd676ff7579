"""What the samples prove about one run: what each device did for it, look by look. Pure.

From strongest to weakest: the run's processes computed; they had memory on a device that worked; a device that was the
run's alone worked. A time in which nobody looked says nothing, neither of work nor of its absence.
"""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu.judging.facts import NAMED, Facts, seen
from holdfast.farside.gpu.watching.samples import Row, Samples, period

WORKING, HELD, WAITING, UNKNOWN = "working", "held", "waiting", "unknown"
"""What a device did for the run: it computed; its memory was held and it did not compute; nothing; nobody can say."""
UTILISATION, MEMORY, DEVICE = "utilisation", "memory", "device"
LADDER = (UTILISATION, MEMORY, DEVICE)
FEWEST_LOOKS = 3
CONTEXT = 32 << 20
"""Bytes: whoever computes on a device has at least so many of its memory."""
FULL = 0.98


class Part(NamedTuple):
    """A device of the machine, from facts and samples together. `before`: bytes in use before the script started."""

    number: int
    uuid: str
    name: str
    total: Optional[int]
    before: Optional[int]
    mig: bool
    is_leased: bool
    had_strangers: bool


class Look(NamedTuple):
    """One look while the script ran, and since when it stands for the time that passed."""

    since: float
    time: float
    rows: Dict[int, Row]

    @property
    def weight(self) -> float:
        return self.time - self.since


class Tally(NamedTuple):
    """All looks at one device. Seconds are counted where it is known what it did."""

    part: Part
    looks: int
    working: int
    held: int
    unknown: int
    worked_seconds: float
    known_seconds: float
    mean: Optional[float]
    peak: Optional[int]
    first: Optional[float]
    """When it was first used."""
    evidence: FrozenSet[str]
    others_worked: int
    others: FrozenSet[int]
    is_named: bool
    """Some process was named on it, and `has_unmatched`: one that this machine does not know."""
    has_unmatched: bool
    is_quiet: bool
    """In every look it did nothing for anybody."""
    is_full: bool
    """The last looks found no memory left, with a process of the run on it."""


def parts(facts: Facts, samples: Samples) -> Dict[int, Part]:
    """Devices that can be watched, by their numbers. Another source than NVML has numbers of its own."""
    is_same = samples.source in ("", "nvml")
    known = {each.number: each for each in facts.devices if each.state != NAMED and is_same}
    found: Dict[int, Part] = {}
    for each in known.values():
        total, free = each.memory_total, each.memory_free
        before = None if total is None or free is None else total - free
        leased = facts.leases(each.uuid, each.mig)
        strangers = bool(each.strangers)
        found[each.number] = Part(each.number, each.uuid, each.name, total, before, each.mig, leased, strangers)
    for one in samples.devices:
        if one.number not in found:
            leased = facts.leases(one.uuid, one.mig)
            found[one.number] = Part(one.number, one.uuid, one.name, one.total, None, one.mig, leased, False)
    return found


def concerned(facts: Facts, known: Dict[int, Part]) -> FrozenSet[int]:
    """The numbers of the devices that the run is judged by: what it leased, else what it could see, else all."""
    leased = frozenset(each.number for each in known.values() if each.is_leased)
    visible = frozenset(each.number for each in seen(facts) if each.state != NAMED and each.number in known)
    return leased or visible or frozenset(known)


def looks(samples: Samples, started: float, ended: float) -> Tuple[Look, ...]:
    """Those while the script ran, in order. After a gap a look stands for one period only."""
    found: List[Look] = []
    began = started if samples.began is None else samples.began
    last = started
    for tick in sorted(samples.ticks, key=lambda each: each.time):
        if not started <= tick.time <= ended:
            continue
        usual = period(tick.time - began)
        since = last if tick.time - last <= 2.5 * usual else tick.time - usual
        found.append(Look(since, tick.time, {row.number: row for row in tick.rows}))
        last = tick.time
    return tuple(found)


def patience(samples: Samples, started: float, now: float) -> float:
    """Seconds without a look that are nothing unusual."""
    return max(5.0, 3 * period(now - (started if samples.began is None else samples.began)))


def is_whole(found: Sequence[Look], samples: Samples, started: float, ended: float) -> bool:
    """Whether the script was watched until its end, without a gap in which it could have worked unseen."""
    if len(found) < FEWEST_LOOKS:
        return False
    allowed = patience(samples, started, ended)
    tail = ended - found[-1].time
    unwatched = (ended - started) - sum(each.weight for each in found) - min(tail, allowed)
    return tail <= allowed and unwatched <= max(allowed, 0.1 * (ended - started))


def is_attributed(found: Sequence[Look]) -> bool:
    """Whether processes that the driver names are known to be seen here."""
    return any(row.own or row.others for each in found for row in each.rows.values())


def work(row: Row, part: Part, attributed: bool) -> Tuple[str, str]:
    """What a device did for the run, and by which evidence."""
    if (row.own_utilisation or 0) >= 1:
        return WORKING, UTILISATION
    if is_on(row):
        return _own_work(row)
    if row.utilisation == 0:
        return WAITING, ""
    if part.is_leased and not part.had_strangers and not row.others and row.utilisation is not None:
        return _work_alone(row, part)
    if row.utilisation is None and not attributed:
        return UNKNOWN, ""
    if row.unmatched or (row.utilisation is not None and not row.others):
        return UNKNOWN, ""
    return WAITING, ""


def is_on(row: Row) -> bool:
    """Whether a process of the run is on the device."""
    return bool(row.own) or (row.own_memory or 0) > 0


def tally(part: Part, during: Sequence[Look], after: Sequence[Look], started: float) -> Tally:
    """`after`: looks after the end, where only processes of the run itself count."""
    attributed = is_attributed(during)
    pairs = [(each, each.rows[part.number]) for each in during if part.number in each.rows]
    judged = [(look, row, work(row, part, attributed)) for look, row in pairs]
    late = [(look, look.rows[part.number]) for look in after if part.number in look.rows]
    judged += [(look, row, work(row, part, attributed)) for look, row in late if is_on(row)]
    used = [(look, row, what) for look, row, what in judged if what[0] in (WORKING, HELD)]
    known = [(look.weight, kind) for look, _, (kind, _) in judged if kind != UNKNOWN]
    rows = [row for _, row in pairs]
    strangers = [row for row in rows if row.others and (row.utilisation or 0) >= 1 and not is_on(row)]
    return Tally(
        part=part,
        looks=len(rows),
        working=sum(kind == WORKING for _, _, (kind, _) in judged),
        held=sum(kind == HELD for _, _, (kind, _) in judged),
        unknown=sum(kind == UNKNOWN for _, _, (kind, _) in judged),
        worked_seconds=sum(weight for weight, kind in known if kind == WORKING),
        known_seconds=sum(weight for weight, _ in known),
        mean=_mean([(look.weight, _share(row, kind)) for look, row, (kind, _) in judged]),
        peak=_peak([row for _, row, _ in used]),
        first=min((look.time - started for look, _, _ in used), default=None),
        evidence=frozenset(which for _, _, (_, which) in used if which),
        others_worked=len(strangers),
        others=frozenset(pid for row in strangers for pid in row.others),
        is_named=any(row.own or row.others or row.unmatched for row in rows),
        has_unmatched=any(row.unmatched for row in rows),
        is_quiet=all(row.utilisation == 0 and not (row.own or row.others or row.unmatched) for row in rows),
        is_full=any(_is_full(row, part) for row in rows[-5:]),
    )


def is_unused(found: Tally, attributed: bool) -> bool:
    """Whether it is proved that the device did not compute for the run."""
    if found.looks < FEWEST_LOOKS or found.working or found.unknown or found.has_unmatched:
        return False
    return attributed or found.is_quiet


def _own_work(row: Row) -> Tuple[str, str]:
    """Of a device that a process of the run is on, which is not known to compute itself."""
    if row.utilisation is None:
        return (WORKING, MEMORY) if row.own_utilisation is None else (HELD, MEMORY)
    if row.utilisation >= 1 and (row.own_utilisation is None or not (row.others or row.unmatched)):
        return WORKING, MEMORY
    return HELD, MEMORY


def _work_alone(row: Row, part: Part) -> Tuple[str, str]:
    """Of a leased device that works while the run's processes are not named on it: it is the run that computes, unless
    no memory is in use that was not before, as where a screen is drawn."""
    if row.unmatched or row.memory is None or part.before is None or row.memory >= part.before + CONTEXT:
        return WORKING, DEVICE
    return WAITING, ""


def _share(row: Row, kind: str) -> Optional[float]:
    """Of the device's time that the run had, in per cent."""
    if kind in (HELD, WAITING):
        return 0.0
    if kind == WORKING and (row.own_utilisation or 0) >= 1:
        return float(row.own_utilisation or 0)
    return None if kind == UNKNOWN or row.others or row.utilisation is None else float(row.utilisation)


def _mean(weighted: Sequence[Tuple[float, Optional[float]]]) -> Optional[float]:
    """Over the whole time; None where it is not known of a part of it."""
    total = sum(weight for weight, _ in weighted)
    if any(value is None for _, value in weighted) or not weighted:
        return None
    if total <= 0:
        return sum(value or 0.0 for _, value in weighted) / len(weighted)
    return sum(weight * (value or 0.0) for weight, value in weighted) / total


def _peak(rows: Sequence[Row]) -> Optional[int]:
    known = [row.own_memory if is_on(row) else row.memory for row in rows]
    return max((each for each in known if each is not None), default=None)


def _is_full(row: Row, part: Part) -> bool:
    if not is_on(row) or row.memory is None or not part.total:
        return False
    return row.memory >= FULL * part.total
