"""Getting GPUs for a run, which nobody else who uses Holdfast on this machine then gets: waits for its turn, says for
what it waits, and takes no device that somebody else computes on."""

import socket
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu.leasing import registry
from holdfast.farside.gpu.leasing.occupants import MPS_SERVER, occupant, user_name
from holdfast.farside.gpu.leasing.queue import Ticket, allocate, before
from holdfast.farside.gpu.leasing.registry import Holder, State
from holdfast.farside.gpu.leasing.units import Unit, conditions, gibibytes, large_enough, units
from holdfast.farside.gpu.request import ALL, Request
from holdfast.farside.machine import gpus
from holdfast.farside.machine.gpus import Report
from holdfast.farside.refusal import Refused

__all__ = ["Holder", "Lease", "lease"]

SOON, LATER = 0.25, 1.0
"""Seconds between looks: of those whose turn comes soon, and of those with many before them."""
AT_ONCE = 0.02
"""Somebody was quicker."""
MANY = 8
ASK_EVERY = 2.0
"""Seconds between questions to the driver while somebody else's process is in the way."""
_MOST_NAMED = 2


class Lease(NamedTuple):
    """Lasts for as long as anybody has the sockets open (`holding`)."""

    units: Tuple[Unit, ...]
    sockets: Tuple[socket.socket, ...]

    @property
    def uuids(self) -> Tuple[str, ...]:
        return tuple(each.uuid for each in self.units)


def lease(
    request: Request,
    report: Report,
    ask: Callable[[], Report],
    tell: Callable[[str], None],
    wait: Callable[[float], None],
    who: Holder,
) -> Lease:
    """The GPUs that the run asks for, once they are free. `ask` asks the driver anew; `tell` hears what is waited for,
    when it changes; `wait` waits at most so many seconds and may raise, which gives up the place in the queue. Refused
    where this machine can never give so many."""
    if report["state"] != gpus.OK:
        report = ask()
    wanted = _Wanted(request, report)
    ticket, places = registry.queue_up(wanted.gpus, [each.uuid for each in wanted.usable])
    try:
        return _Waiting(wanted, ticket, ask).until_given(tell, wait, who)
    finally:
        registry.close(places)


class _Wanted:
    """What a request means on a machine. Raises Refused where that is more than it has."""

    def __init__(self, request: Request, report: Report) -> None:
        self.request = request
        found = units(report)
        self.usable = large_enough(found, request.min_memory)
        self.gpus = max(1, len(self.usable)) if request.gpus == ALL else int(request.gpus or 1)
        if len(self.usable) < self.gpus:
            raise _refusal(request, report, found, len(self.usable))

    @property
    def text(self) -> str:
        return "waiting for a GPU" if self.gpus == 1 else "waiting for %d GPUs" % self.gpus


class _Waiting:
    def __init__(self, wanted: _Wanted, ticket: Ticket, ask: Callable[[], Report]) -> None:
        self._wanted, self._ticket, self._ask = wanted, ticket, ask
        self._obstacles: Dict[str, str] = {}
        self._asked: Optional[float] = None
        self._asked_of: Tuple[str, ...] = ()
        self._problem = ""

    def until_given(self, tell: Callable[[str], None], wait: Callable[[float], None], who: Holder) -> Lease:
        said = ""
        while True:
            state = registry.read()
            chosen = self._choose(state)
            sockets = registry.take(chosen, who) if chosen else None
            if chosen and sockets is not None:
                by_uuid = {each.uuid: each for each in self._wanted.usable}
                return Lease(tuple(by_uuid[each] for each in chosen), tuple(sockets))
            if chosen:
                wait(AT_ONCE)
                continue
            text = "%s: %s" % (self._wanted.text, self._reason(state))
            if text != said:
                said = text
                tell(text)
            wait(SOON if len(before(state.tickets, self._ticket)) < MANY else LATER)

    def _choose(self, state: State) -> Optional[Tuple[str, ...]]:
        """The driver is asked only when it is this run's turn as far as the others are concerned."""
        free = [each.uuid for each in self._wanted.usable if each.uuid not in state.taken]
        if allocate(state.tickets, self._ticket, free) is None:
            return None
        if self._is_to_ask(free):
            self._look()
            self._asked, self._asked_of = time.monotonic(), tuple(free)
        if self._problem:
            return None
        return allocate(state.tickets, self._ticket, [each for each in free if each not in self._obstacles])

    def _is_to_ask(self, free: Sequence[str]) -> bool:
        """What the driver said of a device while another run had it is no answer."""
        if self._asked is None or time.monotonic() - self._asked >= ASK_EVERY:
            return True
        return not set(free) <= set(self._asked_of)

    def _look(self) -> None:
        report = self._ask()
        self._problem = "" if report["state"] == gpus.OK else report["problem"] or "the driver does not answer"
        if self._problem:
            return
        request = self._wanted.request
        still = {each.uuid for each in _Wanted(request._replace(gpus=self._wanted.gpus), report).usable}
        found = conditions(report)
        self._obstacles = {}
        for each in self._wanted.usable:
            if each.uuid not in still:
                self._obstacles[each.uuid] = "%s does not work" % each.label
                continue
            there = [occupant(pid) for pid in found[each.uuid].pids]
            others = [who for who in there if not who.name.startswith(MPS_SERVER)]
            free = found[each.uuid].free
            if others:
                self._obstacles[each.uuid] = "%s is used by %s" % (each.label, others[0].text)
            elif request.min_memory and free is not None and free < request.min_memory:
                self._obstacles[each.uuid] = "%s has %s free" % (each.label, gibibytes(free))

    def _reason(self, state: State) -> str:
        ahead = len(before(state.tickets, self._ticket))
        if ahead:
            return "%d run%s ahead" % (ahead, "" if ahead == 1 else "s")
        if self._problem:
            return self._problem
        found: List[str] = []
        for each in self._wanted.usable:
            if each.uuid in state.taken:
                found.append("%s is held by %s" % (each.label, _named(state.holder(each.uuid))))
            elif each.uuid in self._obstacles:
                found.append(self._obstacles[each.uuid])
        more = len(found) - _MOST_NAMED
        return "; ".join(found[:_MOST_NAMED]) + ("; %d more" % more if more > 0 else "")


def _named(holder: Optional[Holder]) -> str:
    return "another run" if holder is None else "the run %s of %s" % (holder.run, user_name(holder.uid))


def _refusal(request: Request, report: Report, found: Sequence[Unit], enough: int) -> Refused:
    asked = "%s asks for %s" % (request.by or "the run", "a GPU" if request.gpus in (1, ALL) else request.gpus)
    if not found:
        hint = "Run it where there is one, or without asking for GPUs."
        if report["state"] == gpus.NO_DRIVER:
            return Refused("gpu", "This machine has no NVIDIA driver, and %s." % asked, hint)
        if report["state"] != gpus.OK:
            why = str(report["problem"] or "the driver does not answer").rstrip(".")
            return Refused("gpu", "The GPUs of this machine cannot be used (%s), and %s." % (why, asked), hint)
        return Refused("gpu", "This machine has no GPU that works, and %s." % asked, hint)
    there = "%d GPU%s" % (len(found), "" if len(found) == 1 else "s")
    if enough == len(found):
        hint = "Ask for at most %d: `--gpus %d`, or `Gpus: %d` in the run configuration." % ((enough,) * 3)
        return Refused("gpu", "This machine has %s, and %s." % (there, asked), hint)
    least = gibibytes(request.min_memory or 0)
    which = "No GPU of this machine has" if not enough else "Only %d of this machine's %s has" % (enough, there)
    text = "%s %s of memory or more, and %s." % (which, least, asked)
    largest = max((each.total or 0 for each in found), default=0)
    return Refused("gpu", text, "Its largest has %s: lower `--min-gpu-memory`, or ask for fewer." % gibibytes(largest))
