"""Whose turn it is: runs that wait for GPUs, in the order in which they came. Pure.

A run that waits reserves every device that it could use, so that none waits for ever; a later one takes what those
before it cannot use."""

from typing import FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple


class Ticket(NamedTuple):
    """`time` in nanoseconds since the machine started; `gpus` is how many are wanted of `usable`, by UUID. `namespace`
    is the one in which `pid` is a process, 0 where that is not known. `uid` and `run`: who says to wait, for people."""

    time: int
    pid: int
    gpus: int
    usable: FrozenSet[str]
    namespace: int = 0
    uid: Optional[int] = None
    run: str = ""


def before(tickets: Iterable[Ticket], mine: Ticket) -> List[Ticket]:
    """Those that came earlier and could use the same devices."""
    return [each for each in tickets if each[:2] < mine[:2] and each.usable & mine.usable]


def allocate(tickets: Iterable[Ticket], mine: Ticket, free: Sequence[str]) -> Optional[Tuple[str, ...]]:
    """The devices that are mine now, of those that are `free`, in their order; None where I have to wait."""
    reserved: Set[str] = set()
    for each in before(tickets, mine):
        reserved |= each.usable
    left = [each for each in free if each in mine.usable and each not in reserved]
    return tuple(left[: mine.gpus]) if len(left) >= mine.gpus else None
