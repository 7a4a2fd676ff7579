"""What one look at a device proves about the run: what the device did for it then, and by which evidence; and for how
long the devices waited. Pure.

From strongest to weakest: the run's processes computed; they had memory on a device that worked; a device that was the
run's alone worked. A time without looks says nothing, neither of work nor of its absence.
"""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

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
MOST_SPELLS = 20
SHORTEST_SPELL = 2.0
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


def waiting(
    during: Sequence[TimedLook], kinds: Dict[int, bytearray], meant: FrozenSet[int], started: float
) -> Tuple[Optional[float], Tuple[Tuple[float, float], ...]]:
    """The share of the script's time in which the devices waited, as far as it is known; and the longest spells of it,
    in seconds after the start. `kinds`: what each device did in each of these looks; `meant` are those that the run is
    judged by."""
    every, wanted = list(kinds.values()), [kinds[number] for number in meant]
    found = [
        (look, _together([each[place] for each in every], [each[place] for each in wanted]))
        for place, look in enumerate(during)
    ]
    known = [(look.weight, kind) for look, kind in found if kind != UNCLEAR]
    total = sum(weight for weight, _ in known)
    if total <= 0:
        return None, ()
    share = sum(weight for weight, kind in known if kind == WAITING) / total
    return min(1.0, share), _spells(found, started)


def idle_for(samples: Samples, facts: GpuFacts, started: float, now: float) -> Optional[float]:
    """Seconds without work until now, since the start at most. After a gap, as of a machine that slept, they are
    counted from the first look: what was done in it is not known. None where it cannot be judged: there was no look
    lately, or it is not known whose the work is, or how much there is."""
    found, allowed = looks(samples, started, now), patience(samples, started, now)
    kind_of = _Judging(facts, samples, found)
    if not found or now - found[-1].time > allowed or kind_of(found[-1]) == UNCLEAR:
        return None
    later = now
    for look in reversed(found):
        if later - look.time > allowed:
            return now - later
        later = look.time
        if kind_of(look) != WAITING:
            return now - later
    return now - (started if found[0].since <= started else later)


class _Judging:
    """What the devices together did in one look: not all of them are needed to know since when they wait."""

    def __init__(self, facts: GpuFacts, samples: Samples, found: Sequence[TimedLook]) -> None:
        self._parts = parts(facts, samples)
        self._meant = concerned(facts, self._parts)
        self._attributed = is_attributed(found, facts)

    def __call__(self, look: TimedLook) -> int:
        kinds = {
            row.number: work(row, self._parts[row.number], self._attributed)[0]
            for row in look.rows
            if row.number in self._parts
        }
        return _together(tuple(kinds.values()), tuple(kinds.get(number, ABSENT) for number in self._meant))


def _together(every: Sequence[int], wanted: Sequence[int]) -> int:
    """Devices work where one of them does; they wait where it is known of each of the `wanted` that it does."""
    if WORKING in every:
        return WORKING
    known = [kind for kind in wanted if kind != ABSENT]
    return WAITING if known and all(kind in (WAITING, HELD) for kind in known) else UNCLEAR


def _spells(found: Sequence[Tuple[TimedLook, int]], started: float) -> Tuple[Tuple[float, float], ...]:
    spells: List[Tuple[float, float]] = []
    for look, kind in found:
        if kind != WAITING:
            continue
        begin, end = look.since - started, look.until - started
        if spells and begin <= spells[-1][1]:
            spells[-1] = (spells[-1][0], end)
        else:
            spells.append((begin, end))
    longest = sorted(spells, key=lambda each: each[0] - each[1])[:MOST_SPELLS]
    return tuple(sorted((round(a, 1), round(b, 1)) for a, b in longest if b - a >= SHORTEST_SPELL))
