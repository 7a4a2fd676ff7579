"""What one look at a device proves about the run: what the device did for it then, and by which evidence. Pure.

From strongest to weakest: the run's processes computed; they had memory on a device that worked; a device that was the
run's alone worked. A time in which nobody looked says nothing, neither of work nor of its absence.
"""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu.judging.facts import NAMED, Facts, seen
from holdfast.farside.gpu.watching.samples import Row, Samples, period

ABSENT, UNKNOWN, WAITING, HELD, UNMEASURED, WORKING = range(6)
"""What a device did for the run in a look: it was not looked at; nobody can say; nothing; its memory was held and it
did not compute; its memory was held and how much it computed nobody says; it computed. Numbers, because there are
hundreds of thousands of them."""
UTILISATION, MEMORY, DEVICE = "utilisation", "memory", "device"
LADDER = (UTILISATION, MEMORY, DEVICE)
FEWEST_LOOKS = 3
_REGULAR = 2.5
"""Periods between looks that are no gap."""
CONTEXT = 32 << 20
"""Bytes: whoever computes on a device has at least so many of its memory."""


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
    """One look while the script ran, and the time that it stands for: what passed since the one before, and for the
    last of them also what the script still ran."""

    since: float
    time: float
    until: float
    rows: Tuple[Row, ...]

    @property
    def weight(self) -> float:
        return self.until - self.since


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
        since = last if tick.time - last <= _REGULAR * usual else tick.time - usual
        found.append(Look(since, tick.time, tick.time, _once(tick.rows)))
        last = tick.time
    if found and ended - last <= _REGULAR * period(last - began):
        found[-1] = found[-1]._replace(until=ended)
    return tuple(found)


def looks_after(samples: Samples, ended: float) -> Tuple[Look, ...]:
    """They stand for no time of the script's."""
    return tuple(Look(tick.time, tick.time, tick.time, _once(tick.rows)) for tick in samples.ticks if tick.time > ended)


def patience(samples: Samples, started: float, now: float) -> float:
    """Seconds without a look that are nothing unusual."""
    return max(5.0, 3 * period(now - (started if samples.began is None else samples.began)))


def is_attributed(found: Sequence[Look], facts: Facts) -> bool:
    """Whether the processes that the driver names are known to be those that are seen here. Its numbers are the
    machine's: where this is a container with numbers of its own, one that is there too may be anybody's."""
    trusts = facts.has_machine_pids
    for each in found:
        for row in each.rows:
            if row.own or (trusts and row.others):
                return True
    return False


def work(row: Row, part: Part, attributed: bool) -> Tuple[int, str]:
    """What a device did for the run, and by which evidence."""
    own = row.own_utilisation
    if own is not None and own >= 1:
        return WORKING, UTILISATION
    if is_on(row):
        return _own_work(row)
    if row.utilisation == 0:
        return WAITING, ""
    is_strange, is_anonymous = bool(row.others and attributed), has_anonymous(row, attributed)
    if part.is_leased and not part.had_strangers and not row.others and row.utilisation is not None:
        return _work_alone(row, part, is_anonymous)
    if row.utilisation is None and not attributed:
        return UNKNOWN, ""
    if is_anonymous or (row.utilisation is not None and not is_strange):
        return UNKNOWN, ""
    return WAITING, ""


def is_on(row: Row) -> bool:
    """Whether a process of the run is on the device."""
    return bool(row.own) or (row.own_memory or 0) > 0


def has_anonymous(row: Row, attributed: bool) -> bool:
    """Whether a process is on the device of which nobody can say whose it is."""
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


def _work_alone(row: Row, part: Part, is_anonymous: bool) -> Tuple[int, str]:
    """Of a leased device that works while the run's processes are not named on it: it is the run that computes, unless
    no memory is in use that was not before, as where a screen is drawn."""
    if is_anonymous or row.memory is None or part.before is None or row.memory >= part.before + CONTEXT:
        return WORKING, DEVICE
    return WAITING, ""
