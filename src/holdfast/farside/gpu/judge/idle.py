"""When the GPUs waited for a run: spells without work, their share of its time, how long they have waited until now.
Pure. Where it is not known what a GPU did, nothing is said of that time."""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu.gpu_facts import GpuFacts
from holdfast.farside.gpu.judge.evidence import (
    ABSENT,
    HELD,
    UNCLEAR,
    WAITING,
    WORKING,
    TimedLook,
    concerned,
    is_attributed,
    looks,
    parts,
    patience,
    work,
)
from holdfast.farside.gpu.samples import Samples

MOST_SPELLS = 20
SHORTEST_SPELL = 2.0


class IdleTime(NamedTuple):
    """`share` of the script's time, as far as it is known of; None where none is. `spells`: the longest, of that same
    time, in seconds after the start."""

    share: Optional[float]
    spells: Tuple[Tuple[float, float], ...]


def waiting(
    during: Sequence[TimedLook], kinds: Dict[int, bytearray], meant: FrozenSet[int], started: float
) -> IdleTime:
    """`kinds`: what each device did in each of these looks; `meant` are those that the run is judged by."""
    every, wanted = list(kinds.values()), [kinds[number] for number in meant]
    found = [
        (look, _together([each[place] for each in every], [each[place] for each in wanted]))
        for place, look in enumerate(during)
    ]
    known = [(look.weight, kind) for look, kind in found if kind != UNCLEAR]
    total = sum(weight for weight, _ in known)
    if total <= 0:
        return IdleTime(None, ())
    share = sum(weight for weight, kind in known if kind == WAITING) / total
    return IdleTime(min(1.0, share), _spells(found, started))


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
