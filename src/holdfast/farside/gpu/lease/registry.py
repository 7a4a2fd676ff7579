"""Leases and tickets of all users of this machine: names of abstract Unix sockets, which need no file that another user
might not open, and are gone with the last process that holds them, however it ended.

    holdfast-gpu/UUID                         the lock: the process that has bound it has the device
    holdfast-gpu-of/MARK/UID/PID/RUN          who that is; MARK stands for the UUID
    holdfast-gpu-wants/TIME-PID-GPUS-NAMESPACE/UUID
                                              a run that waits: one for each device that it could use
    holdfast-gpu-waits/TIME-PID-NAMESPACE/UID/RUN
                                              which run that is

A run's name is cut from its left where it is too long: it ends with what makes it the only one.

NAMESPACE is the one in which PID is the process that waits: in a container it is another's outside.

No process listens on them: a connection that is never accepted would stay in the kernel.
"""

import array
import binascii
import errno
import os
import socket
import time
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple


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


SOCKETS = "/proc/net/unix"
_LOCK, _HOLDER = "holdfast-gpu/", "holdfast-gpu-of/"
_TICKET, _WAITER = "holdfast-gpu-wants/", "holdfast-gpu-waits/"
_LONGEST = 107
_CLOCK_BOOTTIME = 7
"""`time` has it since Python 3.7."""


class LeaseHolder(NamedTuple):
    """A run that has a lease; `pid` is its guardian's."""

    uid: int
    run: str
    pid: int


class LeaseState(NamedTuple):
    """At one moment: UUIDs of leased devices, the runs that wait, and holders by the marks of their devices."""

    taken: FrozenSet[str]
    tickets: Tuple[Ticket, ...]
    holders: Dict[str, LeaseHolder]

    def holder(self, uuid: str) -> Optional[LeaseHolder]:
        return self.holders.get(mark(uuid)) if uuid in self.taken else None


def now() -> int:
    """Nanoseconds since the machine started, the same for all processes on it."""
    return int(time.clock_gettime(_CLOCK_BOOTTIME) * 1e9)


def read() -> LeaseState:
    """Empty if the system does not list its sockets: then the locks alone decide."""
    try:
        with open(SOCKETS, "rb") as source:
            return parse(source.read().decode("utf-8", "replace"))
    except OSError:
        return parse("")


def parse(text: str) -> LeaseState:
    """The last word of a line is the name; `@` stands for the zero that abstract ones begin with."""
    taken: Set[str] = set()
    holders: Dict[str, LeaseHolder] = {}
    wanted: Dict[Tuple[int, int, int, int], Set[str]] = {}
    waiters: Dict[Tuple[int, int, int], Tuple[int, str]] = {}
    for line in text.split("\n"):
        _, found, rest = line.partition(" @holdfast-gpu")
        if not found:
            continue
        name = "holdfast-gpu" + rest
        try:
            if name.startswith(_LOCK):
                taken.add(name[len(_LOCK) :])
            elif name.startswith(_HOLDER):
                shown, uid, pid, run = name[len(_HOLDER) :].split("/", 3)
                holders[shown] = LeaseHolder(int(uid), run, int(pid))
            elif name.startswith(_TICKET):
                key, _, uuid = name[len(_TICKET) :].partition("/")
                moment, process, gpus, where = key.split("-")
                wanted.setdefault((int(moment, 16), int(process), int(gpus), int(where, 16)), set()).add(uuid)
            elif name.startswith(_WAITER):
                key, uid, run = name[len(_WAITER) :].split("/", 2)
                moment, process, where = key.split("-")
                waiters[int(moment, 16), int(process), int(where, 16)] = (int(uid), run)
        except ValueError:
            continue  # another program's use of such a name
    tickets = []
    for (since, waiter, count, space), uuids in sorted(wanted.items()):
        about = waiters.get((since, waiter, space), (None, ""))
        tickets.append(Ticket(since, waiter, count, frozenset(uuids), space, *about))
    return LeaseState(frozenset(taken), tuple(tickets), holders)


def queue_up(gpus: int, uuids: Sequence[str], who: Optional[LeaseHolder] = None) -> Tuple[Ticket, List[socket.socket]]:
    """A place in the queue, for as long as the sockets are open."""
    while True:
        ticket = Ticket(now(), os.getpid(), gpus, frozenset(uuids), _namespace())
        key = "%016x-%d-%d-%x" % (ticket.time, ticket.pid, gpus, ticket.namespace)
        sockets = _bind_all(["%s%s/%s" % (_TICKET, key, each) for each in uuids])
        if sockets is None:
            continue
        if who is not None:
            about = "%s%016x-%d-%x/%d/" % (_WAITER, ticket.time, ticket.pid, ticket.namespace, who.uid)
            sockets += _bind_about(about, who.run)
        return ticket, sockets


def is_here(ticket: Ticket) -> bool:
    """Whether its pid is one of this process's namespace."""
    return ticket.namespace != 0 and ticket.namespace == _namespace()


def is_away(ticket: Ticket) -> bool:
    """Whether this turn would not be taken now: the process is stopped, or it is gone and something that it left has
    its sockets. Not said of one that cannot be seen."""
    if not is_here(ticket):
        return False
    try:
        with open("/proc/%d/stat" % ticket.pid, "rb") as source:
            state = source.read().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return _is_gone(ticket.pid)
    return state in (b"T", b"Z", b"X")


def take(uuids: Sequence[str], who: LeaseHolder) -> Optional[List[socket.socket]]:
    """Lease all of them, for as long as the sockets are open, or none: None if another run was quicker."""
    sockets = _bind_all([_LOCK + each for each in uuids])
    if sockets is None:
        return None
    for each in uuids:
        sockets += _bind_about("%s%s/%d/%d/" % (_HOLDER, mark(each), who.uid, who.pid), who.run)
    return sockets


def mark(uuid: str) -> str:
    """Short, as a name has 107 bytes and a run's is long."""
    return "%08x" % (binascii.crc32(uuid.encode("utf-8", "replace")) & 0xFFFFFFFF)


def _namespace() -> int:
    """The low digits of the PID namespace's number: a socket's name must be short. 0 if it is unknown."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino & 0xFFFFFF
    except OSError:
        return 0


def _is_gone(pid: int) -> bool:
    """Other users' processes may be hidden in /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _bind_all(names: Sequence[str]) -> Optional[List[socket.socket]]:
    found: List[socket.socket] = []
    for name in names:
        try:
            bound = _bind(name)
        except BaseException:
            close(found)
            raise
        if bound is None:
            close(found)
            return None
        found.append(bound)
    return found


def _bind_about(name: str, run: str) -> List[socket.socket]:
    """A socket whose name shows the run to people. Empty if it cannot be bound, which does no harm."""
    room = _LONGEST - len(name)
    shown = run if len(run.encode("utf-8", "replace")) <= room else "~" + _last_bytes(run, room - 1)
    try:
        bound = _bind(name + shown)
    except OSError:
        return []
    return [] if bound is None else [bound]


def _last_bytes(text: str, count: int) -> str:
    return text.encode("utf-8", "replace")[-count:].decode("utf-8", "ignore")


def _bind(name: str) -> Optional[socket.socket]:
    """None if another process has it."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # closed when anything is executed: Python sees to that
    try:
        made.bind(b"\0" + name.encode("utf-8", "replace"))
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return made


def close(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()


def pair() -> Tuple[socket.socket, socket.socket]:
    """Made by the guardian before it forks: the end that it keeps, and the one for its supervisor. Each closes the
    other's; the guardian's is never read. Nothing that is executed inherits either."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def hand_over(given: socket.socket, sockets: Sequence[socket.socket]) -> bool:
    """Let the guardian hold the sockets too; the caller keeps them in any case. False if the guardian is gone or the
    system refuses: then the lease ends with the caller."""
    if not sockets:
        return True
    descriptors = array.array("i", [each.fileno() for each in sockets])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors.tobytes())]
    try:
        return given.sendmsg([b"\0"], rights, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) == 1
    except OSError:
        return False
