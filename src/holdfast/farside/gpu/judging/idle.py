"""When the GPUs waited for a run: spells without work, their share of its time, how long they have waited until now.
Pure. Where nobody can say what a GPU did, nothing is said of that time."""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu.judging.evidence import (
    HELD,
    UNKNOWN,
    WAITING,
    WORKING,
    Look,
    Part,
    concerned,
    is_attributed,
    is_on,
    looks,
    parts,
    patience,
    work,
)
from holdfast.farside.gpu.judging.facts import Facts
from holdfast.farside.gpu.watching.samples import Samples

MOST_SPELLS = 20
SHORTEST_SPELL = 2.0


class Waiting(NamedTuple):
    """`share` of the time that is known of; None where none is. `spells`: the longest, in seconds after the start."""

    share: Optional[float]
    spells: Tuple[Tuple[float, float], ...]


def waiting(samples: Samples, facts: Facts, started: float, ended: float) -> Waiting:
    found = _judged(samples, facts, started, ended)
    known = [(look.weight, kind) for look, kind in found if kind != UNKNOWN]
    total = sum(weight for weight, _ in known)
    if total <= 0:
        return Waiting(None, ())
    share = sum(weight for weight, kind in known if kind == WAITING) / total
    return Waiting(min(1.0, share), _spells(found, started))


def idle_for(samples: Samples, facts: Facts, started: float, now: float) -> Optional[float]:
    """Seconds without work until now, since the start at most. None where it cannot be judged: nobody has looked
    lately, or nobody can say whose the work is, or how much there is."""
    found = _judged(samples, facts, started, now)
    if not found or now - found[-1][0].time > patience(samples, started, now) or found[-1][1] == UNKNOWN:
        return None
    since = now
    allowed = patience(samples, started, now)
    for look, kind in reversed(found):
        if kind != WAITING:
            since = look.time
            break
        if since - look.time > allowed:  # what was before the gap is over
            break
        since = look.since
    return max(0.0, now - since)


def _judged(samples: Samples, facts: Facts, started: float, ended: float) -> List[Tuple[Look, str]]:
    known = parts(facts, samples)
    meant = concerned(facts, known)
    found = looks(samples, started, ended)
    attributed = is_attributed(found)
    return [(look, _all_together(look, known, meant, attributed)) for look in found]


def _all_together(look: Look, known: Dict[int, Part], meant: FrozenSet[int], attributed: bool) -> str:
    """It works where one of them does; it waits where it is known of each that it does."""
    kinds: Dict[int, str] = {}
    for number, row in look.rows.items():
        part = known.get(number)
        if part is None:
            continue
        kind, _ = work(row, part, attributed)
        if is_on(row) and row.utilisation is None and row.own_utilisation is None:
            kind = UNKNOWN  # its memory is held; how much it computes nobody says
        kinds[number] = kind
    if WORKING in kinds.values():
        return WORKING
    wanted = [kinds[number] for number in meant if number in kinds]
    return WAITING if wanted and all(kind in (WAITING, HELD) for kind in wanted) else UNKNOWN


def _spells(found: Sequence[Tuple[Look, str]], started: float) -> Tuple[Tuple[float, float], ...]:
    spells: List[Tuple[float, float]] = []
    for look, kind in found:
        if kind != WAITING:
            continue
        begin, end = look.since - started, look.time - started
        if spells and begin <= spells[-1][1]:
            spells[-1] = (spells[-1][0], end)
        else:
            spells.append((begin, end))
    longest = sorted(spells, key=lambda each: each[0] - each[1])[:MOST_SPELLS]
    return tuple(sorted((round(a, 1), round(b, 1)) for a, b in longest if b - a >= SHORTEST_SPELL))
