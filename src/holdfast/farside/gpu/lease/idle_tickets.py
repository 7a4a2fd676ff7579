"""Tickets whose turn nobody takes. A ticket costs nothing, says what its account likes, and its process may hang: so it
reserves devices for a time only. Pure."""

from typing import Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from holdfast.farside.gpu.lease.registry import LeaseHolder, Ticket, allocate

TURN = 30.0
"""Seconds for which a ticket may leave devices unused that are enough for it, for each account that is ahead."""
RESERVED = 1800.0
"""Seconds for which a ticket of another account may leave devices unused while it waits for more of them."""
_MOST_TURNS = 10
"""One user may have the numbers of thousands of accounts (subuid(5))."""


class Seen(NamedTuple):
    """What the driver has just said. `clear`: devices that nothing keeps this run from; `users`: the accounts of the
    processes on each device that works, None for one that cannot be seen."""

    clear: FrozenSet[str]
    users: Mapping[str, FrozenSet[Optional[int]]]


class IdleTickets:
    """The driver has to say twice, a turn apart, that nothing else is in the way. Another account cannot put off the
    moment by devices or tickets that come and go: time runs for each device by itself. `works`: the devices that the
    driver lists."""

    def __init__(self, works: FrozenSet[str]) -> None:
        self._works = works
        self._free: Dict[str, float] = {}
        self._able: Dict[Tuple[int, int, int, int, Optional[int]], float] = {}
        self._clear: FrozenSet[str] = frozenset()
        self._asked = -float("inf")

    def rest(
        self,
        ahead: Sequence[Ticket],
        mine: Ticket,
        leases: Mapping[str, LeaseHolder],
        look: Callable[[], Seen],
        now: float,
    ) -> List[Ticket]:
        """Those of `ahead` that this run still waits for. Asks the driver only where the answer may let it pass. `now`
        is monotonic."""
        self._note(ahead, mine, leases, now)
        if not ahead:
            return []
        turns = TURN * min(len({each.uid for each in ahead}), _MOST_TURNS)
        waited = [each for each, since in self._free.items() if now - since >= turns]
        if now - self._asked < turns or allocate(self._left(ahead, mine, now, turns), mine, waited) is None:
            return list(ahead)
        self._asked, seen = now, look()
        for each in ahead:
            if not _is_enough(each, mine, self._works, leases, seen.users):
                self._able[each.place] = now
        known, self._clear = self._clear, seen.clear & frozenset(self._free)
        left = self._left(ahead, mine, now, turns)
        return list(ahead) if allocate(left, mine, sorted(self._clear & known)) is None else left

    def _note(self, ahead: Sequence[Ticket], mine: Ticket, leases: Mapping[str, LeaseHolder], now: float) -> None:
        """Since when each device is free, and each ticket could have what it wants."""
        self._free = {each: self._free.get(each, now) for each in mine.usable if each not in leases}
        able = [each.place for each in ahead if _is_enough(each, mine, self._works, leases, {})]
        self._able = {place: self._able.get(place, now) for place in able}
        self._clear &= frozenset(self._free)

    def _left(self, ahead: Sequence[Ticket], mine: Ticket, now: float, turns: float) -> List[Ticket]:
        """The tickets that have not been idle for long, with what they reserve."""
        old = {each for each, since in self._free.items() if now - since >= RESERVED + turns}
        found = []
        for each in ahead:
            if now - self._able.get(each.place, now) < turns:
                found.append(each if each.uid == mine.uid else each._replace(usable=each.usable - old))
        return found


def _is_enough(
    ticket: Ticket,
    mine: Ticket,
    works: FrozenSet[str],
    leases: Mapping[str, LeaseHolder],
    users: Mapping[str, FrozenSet[Optional[int]]],
) -> bool:
    """Whether nobody else keeps a ticket from its devices. Those that do not exist do not count, and another account
    does not wait for itself."""
    own: Set[Optional[int]] = set() if ticket.uid in (None, mine.uid) else {ticket.uid}
    usable = ticket.usable & works
    free = [
        each
        for each in usable
        if (each not in leases or leases[each].uid in own) and users.get(each, frozenset()) <= own
    ]
    return len(free) >= min(ticket.gpus, len(usable))
