"""Leases GPUs to a run, so that no other run of Holdfast on this machine gets them: waits for its turn, says for what
it waits, and takes no device that another process computes on."""

import socket
import time
from typing import Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from holdfast.farside.gpu.devices import GpuDevice, devices, units
from holdfast.farside.gpu.lease import registry
from holdfast.farside.gpu.lease.idle_tickets import IdleTickets, Seen
from holdfast.farside.gpu.lease.registry import LeaseHolder, LeaseState, Ticket, allocate, before
from holdfast.farside.gpu.occupants import strangers, user_name
from holdfast.farside.gpu.phrases import memory, seconds
from holdfast.farside.gpu.request import ALL, GpuRequest
from holdfast.farside.machine import driver_states
from holdfast.farside.machine.gpus import Report
from holdfast.farside.system.refusal import Refused

PATIENCE = 600.0
"""Seconds without an answer after which none is expected."""
NO_ANSWER = "the driver does not answer"


class Driver:
    """Of the machine on which `request` waits. `ask` asks it, for as long as one likes, and may raise."""

    def __init__(self, request: GpuRequest, ask: Callable[[], Report]) -> None:
        self._request, self._ask = request, ask
        self._since: Optional[float] = None

    def ask(self) -> Optional[Report]:
        """None if it has not answered yet. Raises Refused if it fails, or has not answered for too long."""
        since = time.monotonic() if self._since is None else self._since
        return self._judge(self._ask(), since)

    def judge(self, report: Report) -> Optional[Report]:
        """The same for an answer that the caller already has."""
        return self._judge(report, time.monotonic())

    def forget(self) -> None:
        """Start the wait for an answer anew: the driver is not asked for now."""
        self._since = None

    def _judge(self, report: Report, since: float) -> Optional[Report]:
        if report["state"] == driver_states.FAILED:
            raise failing(self._request, report)
        if report["state"] != driver_states.TIMED_OUT:
            self._since = None
            return report
        self._since = since
        waited = time.monotonic() - since
        if waited >= PATIENCE:
            raise dumb(self._request, waited)
        return None


def _too_many(request: GpuRequest, report: Report, found: Sequence[GpuDevice], enough: int) -> Refused:
    """`found` are those that work, of which so many are large enough."""
    asked = _asked(request)
    if not found:
        hint = "Run it where there is one, or without asking for GPUs."
        if report["state"] == driver_states.NO_DRIVER:
            return Refused("gpu", "This machine has no NVIDIA driver, and %s." % asked, hint)
        return Refused("gpu", "This machine has no GPU that works, and %s." % asked, hint)
    there = "%d GPU%s" % (len(found), "" if len(found) == 1 else "s")
    if enough == len(found):
        hint = "Ask for at most %d: `--gpus %d`, or `Gpus: %d` in the run configuration." % ((enough,) * 3)
        return Refused("gpu", "This machine has %s, and %s." % (there, asked), hint)
    least = _as_typed(request.min_memory or 0)
    which = "No GPU of this machine has"
    if enough:
        which = "Only %d of this machine's %s %s" % (enough, there, "has" if enough == 1 else "have")
    text = "%s %s of memory or more, and %s." % (which, least, asked)
    largest = max((each.memory_total or 0 for each in found), default=0)
    return Refused("gpu", text, "Its largest has %s: lower `--min-gpu-memory`, or ask for fewer." % memory(largest))


def failing(request: GpuRequest, report: Report) -> Refused:
    """The driver's own words say what is wrong with it."""
    why = str(report["problem"] or "the driver does not say why").rstrip(".")
    text = "The GPUs of this machine cannot be used (%s), and %s." % (why, _asked(request))
    return Refused("gpu", text, "Fix the driver (on the machine: nvidia-smi), then submit the run again.")


def dumb(request: GpuRequest, waited: float) -> Refused:
    text = "The driver of this machine's GPUs has not answered for %s, and %s." % (seconds(waited), _asked(request))
    return Refused("gpu", text, "Restart the machine, or have its driver fixed, then submit the run again.")


def _as_typed(count: int) -> str:
    """A user who wrote 80GB does not know it as 74.5 GiB."""
    return memory(count) if count % (1 << 20) == 0 else "%.4g GB (%s)" % (count / 1e9, memory(count))


def _asked(request: GpuRequest) -> str:
    return "%s asks for %s" % (request.by or "the run", "a GPU" if request.gpus in (1, ALL) else request.gpus)


__all__ = ["Lease", "LeaseHolder", "lease"]

_SOON, LATER = 0.25, 1.0
"""Seconds between looks: of those whose turn comes soon, and of those with many before them."""
AT_ONCE = 0.02
"""Another run was quicker."""
_MANY = 8
ASK_EVERY = 2.0
"""Seconds between questions to the driver while it does not answer, or another user's process is in the way."""
_MOST_NAMED = 2
_UNKNOWN = LeaseHolder(None, "", None)


class Lease(NamedTuple):
    """Lasts for as long as a process has the sockets open (`holding`)."""

    units: Tuple[GpuDevice, ...]
    sockets: Tuple[socket.socket, ...]

    @property
    def uuids(self) -> Tuple[str, ...]:
        return tuple(each.uuid for each in self.units)


def lease(
    request: GpuRequest,
    report: Report,
    ask: Callable[[], Report],
    tell: Callable[[str], None],
    wait: Callable[[float], None],
    who: LeaseHolder,
) -> Lease:
    """The GPUs that the run asks for, once they are free. `ask` asks the driver anew, and may take its time; `tell`
    hears what is waited for, when it changes; `wait` waits at most so many seconds. Both may raise, which gives up the
    place in the queue. Refused where this machine can never give so many, and where its driver fails or stays dumb."""
    driver = Driver(request, ask)
    tell = _changes(tell)
    answer = driver.judge(report)
    while True:
        while answer is None:
            tell("%s: %s" % (_waiting_for(request.gpus), NO_ANSWER))
            answer = driver.ask()
            if answer is None:
                wait(ASK_EVERY)
        wanted = _Wanted(request, answer)
        ticket, places = registry.queue_up(wanted.gpus, [each.uuid for each in wanted.usable], who)
        try:
            return _Waiting(wanted, ticket, driver).until_given(tell, wait, who)
        except _Rearranged:
            answer = driver.ask()
        finally:
            registry.close(places)


class _Wanted:
    """What a request means on a machine. Raises Refused if the machine has less."""

    def __init__(self, request: GpuRequest, report: Report) -> None:
        self.request = request
        found, least = units(report), request.min_memory
        self.works = frozenset(each.uuid for each in found)
        self.usable = [each for each in found if not least or (each.memory_total or 0) >= least]
        self.gpus = max(1, len(self.usable)) if request.gpus == ALL else int(request.gpus or 1)
        if len(self.usable) < self.gpus:
            raise _too_many(request, report, found, len(self.usable))


class _Rearranged(Exception):
    """The devices that the run waits for are gone, and there are others: an administrator has partitioned them anew."""


class _Waiting:
    def __init__(self, wanted: _Wanted, ticket: Ticket, driver: Driver) -> None:
        self._request, self._units, self._ticket, self._driver = wanted.request, wanted.usable, ticket, driver
        self._obstacles: Dict[str, str] = {}
        self._lost: Set[str] = set()
        self._asked: Optional[float] = None
        self._asked_of: Tuple[str, ...] = ()
        self._problem = ""
        # The time in a ticket is its account's word. Only what is there now can have come before this run. The kernel
        # does not list all at one moment, and might miss one while another goes.
        self._earlier = {each.place for _ in range(2) for each in registry.read().tickets}
        self._idle = IdleTickets(wanted.works)
        self._users: Dict[str, FrozenSet[Optional[int]]] = {}
        self._denied: Dict[str, int] = {}

    def until_given(self, tell: Callable[[str], None], wait: Callable[[float], None], who: LeaseHolder) -> Lease:
        while True:
            state = self._read()
            chosen = self._choose(state)
            sockets = registry.take(chosen, who) if chosen else None
            if chosen and sockets is not None:
                by_uuid = {each.uuid: each for each in self._units}
                return Lease(tuple(by_uuid[each] for each in chosen), tuple(sockets))
            if chosen:
                is_new = not set(chosen) <= set(self._denied)
                self._denied.update((each, self._denied.get(each, 0) + 1) for each in chosen)
                if is_new:
                    wait(AT_ONCE)
                    continue
                # held all the same, by a socket that the system does not list
                state = state._replace(leases={**dict.fromkeys(self._denied, _UNKNOWN), **state.leases})
            tell("%s: %s" % (_waiting_for(self._ticket.gpus), self._reason(state)))
            wait(_SOON if len(state.tickets) < _MANY else LATER)

    def _read(self) -> LeaseState:
        """With those who are before this run. One that is stopped keeps its place, and no run waits for it."""
        state = registry.read()
        earlier = [each for each in before(state.tickets, self._ticket) if each.place in self._earlier]
        ahead = registry.present(earlier)
        ahead = self._idle.rest(ahead, self._ticket, state.leases, self._seen, time.monotonic())
        return state._replace(tickets=tuple(ahead))

    def _seen(self) -> Seen:
        self._look()
        clear = {each.uuid for each in self._units if each.uuid not in self._obstacles}
        return Seen(frozenset() if self._problem else frozenset(clear), self._users)

    def _choose(self, state: LeaseState) -> Optional[Tuple[str, ...]]:
        """Asks the driver only if other leases and earlier tickets leave enough devices for this run. Those that could
        not be had before are the last to be tried."""
        free = [each.uuid for each in self._units if each.uuid not in state.leases]
        free.sort(key=lambda each: self._denied.get(each, 0))
        if allocate(state.tickets, self._ticket, free) is None:
            self._asked, self._problem = None, ""
            self._driver.forget()
            return None
        if self._is_to_ask(free):
            self._look()
            self._asked, self._asked_of = time.monotonic(), tuple(free)
        if self._problem:
            return None
        return allocate(state.tickets, self._ticket, [each for each in free if each not in self._obstacles])

    def _is_to_ask(self, free: Sequence[str]) -> bool:
        """What the driver said about a device while another run had it does not count."""
        if self._asked is None or time.monotonic() - self._asked >= ASK_EVERY:
            return True
        return not set(free) <= set(self._asked_of)

    def _look(self) -> None:
        report = self._driver.ask()
        self._problem = NO_ANSWER if report is None else ""
        if report is None:
            return
        self._count(report)
        found = {each.uuid: each for each in devices(report)}
        there = {each.uuid: strangers(each.strangers) for each in units(report)}
        self._users = {uuid: frozenset(one.uid for one in others) for uuid, others in there.items()}
        self._obstacles = {}
        least = self._request.min_memory
        for each in self._units:
            if each.uuid in self._lost:
                self._obstacles[each.uuid] = "%s does not work" % each.label
                continue
            others, free = there[each.uuid], found[each.uuid].memory_free
            if others:
                self._obstacles[each.uuid] = "%s is used by %s" % (each.label, others[0].text)
            elif least and free is not None and free < least:
                self._obstacles[each.uuid] = "%s has %s free" % (each.label, memory(free))

    def _count(self, report: Report) -> None:
        """Which still work; all of them are fewer when one does not."""
        now = {each.uuid for each in _Wanted(self._request, report).usable}
        self._lost = {each.uuid for each in self._units if each.uuid not in now}
        working = len(self._units) - len(self._lost)
        if self._request.gpus == ALL:
            self._ticket = self._ticket._replace(gpus=max(1, working))
        if working < self._ticket.gpus:
            raise _Rearranged

    def _reason(self, state: LeaseState) -> str:
        if state.tickets:
            return _ahead(state.tickets, self._ticket)
        if self._problem:
            return self._problem
        found: List[str] = []
        for each in self._units:
            if each.uuid in self._lost and self._request.gpus == ALL:
                continue  # and is not waited for
            if each.uuid in state.leases:
                found.append("%s is held by %s" % (each.label, _named(state.leases[each.uuid])))
            elif each.uuid in self._obstacles:
                found.append(self._obstacles[each.uuid])
        more = len(found) - _MOST_NAMED
        return "; ".join(found[:_MOST_NAMED]) + ("; %d more" % more if more > 0 else "")


def _changes(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Passes a text on unless it repeats the last one."""
    said = [""]

    def tell_new(text: str) -> None:
        if text != said[0]:
            said[0] = text
            tell(text)

    return tell_new


def _waiting_for(count: Union[int, str, None]) -> str:
    if count == ALL:
        return "waiting for the GPUs"
    return "waiting for a GPU" if count in (1, None) else "waiting for %s GPUs" % count


def _ahead(tickets: Sequence[Ticket], mine: Ticket) -> str:
    """Names the account that the user may ask, if that is another one."""
    count, first = len(tickets), tickets[0].uid
    text = "%d run%s ahead" % (count, "" if count == 1 else "s")
    if first == mine.uid:
        return text
    whose = "an unknown account" if first is None else user_name(first)
    return "%s, %s %s" % (text, "of" if count == 1 else "the first of", whose)


def _named(holder: LeaseHolder) -> str:
    """The account is the kernel's word, the run that account's."""
    if holder.uid is None:
        return "the run %s of an unknown account" % holder.run if holder.run else "another run"
    return "%s of %s" % ("the run " + holder.run if holder.run else "a process", user_name(holder.uid))
