"""Leases and tickets of all users of this machine: names of abstract Unix sockets, which need no file that another user
might not open, and are gone with the last process that holds them, however it ends.

    holdfast-gpu/UUID                         the lock: the process that has bound it has the device
    holdfast-gpu-of/MARK/PID/RUN              which run that is; MARK stands for the UUID
    holdfast-gpu-wants/TIME-PID-GPUS-NAMESPACE/UUID
                                              a run that waits: one for each device that it could use
    holdfast-gpu-waits/TIME-PID-NAMESPACE/RUN
                                              which run that is

A run's name is cut from its left where it is too long: it ends with what makes it the only one.

NAMESPACE is the one in which PID is the process that waits: in a container it is another's outside.

Any account can bind any name. A name that no run would have is ignored, and names count together only if one account
made their sockets, which the kernel tells. No process listens on them: a connection that is never accepted would stay
in the kernel.
"""

import array
import binascii
import errno
import os
import re
import socket
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from holdfast.farside.system.clock import seconds_since_boot
from holdfast.farside.system.unix_sockets import BoundSocket, bound


class Ticket(NamedTuple):
    """`time` in nanoseconds since the machine started; `gpus` is how many are wanted of `usable`, by UUID. `namespace`
    is the one in which `pid` is a process, 0 where that is not known. `uid` is the account that made the sockets, None
    where the kernel does not tell. All else is its word; `run` is for people."""

    time: int
    pid: int
    gpus: int
    usable: FrozenSet[str]
    namespace: int = 0
    uid: Optional[int] = None
    run: str = ""

    @property
    def place(self) -> Tuple[int, int, int, int, Optional[int]]:
        """What no other ticket has."""
        return self.time, self.pid, self.gpus, self.namespace, self.uid


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


_ALL, _LOCK, _HOLDER = "holdfast-gpu", "holdfast-gpu/", "holdfast-gpu-of/"
_TICKET, _WAITER = "holdfast-gpu-wants/", "holdfast-gpu-waits/"
_UUID, _RUN = r"([A-Za-z0-9][A-Za-z0-9/._-]{0,79})", r"(~?[\w.-]+)"
_NAMES = {
    _LOCK: re.compile(_LOCK + _UUID),
    _HOLDER: re.compile(_HOLDER + r"([0-9a-f]{8})/([0-9]{1,7})/" + _RUN),
    _TICKET: re.compile(_TICKET + r"([0-9a-f]{16})-([0-9]{1,7})-([0-9]{1,4})-([0-9a-f]{1,6})/" + _UUID),
    _WAITER: re.compile(_WAITER + r"([0-9a-f]{16})-([0-9]{1,7})-([0-9a-f]{1,6})/" + _RUN),
}
_HIGHEST_PID = 1 << 22
"""Of any Linux."""
_LONGEST = 107
_ROUNDING = 10**9
"""Nanoseconds by which a process may seem to have started too late: the kernel counts in hundredths of a second."""


class LeaseHolder(NamedTuple):
    """A run that has a lease; `pid` is its guardian's. As it is read, `uid` is the account that made the lock, None
    where the kernel does not tell; `run` and `pid` are the word of that account, empty and None without one."""

    uid: Optional[int]
    run: str
    pid: Optional[int]


class LeaseState(NamedTuple):
    """At one moment: who has leased devices, by UUID, and the runs that wait, first come first."""

    leases: Dict[str, LeaseHolder]
    tickets: Tuple[Ticket, ...]


def now() -> int:
    """Nanoseconds since the machine started, the same for all processes on it."""
    return int(seconds_since_boot() * 1e9)


def read() -> LeaseState:
    """Empty if the system does not list its sockets: then the locks alone decide."""
    return parse(bound(_ALL.encode("ascii")))


def parse(sockets: Iterable[BoundSocket]) -> LeaseState:
    locks: Dict[str, Optional[int]] = {}
    named: Dict[Tuple[str, Optional[int]], Set[Tuple[str, int]]] = {}
    wanted: Dict[Tuple[int, int, int, int, Optional[int]], Set[str]] = {}
    waiters: Dict[Tuple[int, int, int, Optional[int]], str] = {}
    for name, uid in sockets:
        kind, words = _read_name(name)
        if kind == _LOCK:
            locks[words[0]] = uid
        elif kind == _HOLDER:
            named.setdefault((words[0], uid), set()).add((words[2], int(words[1])))
        elif kind == _TICKET:
            numbers = int(words[0], 16), int(words[1]), int(words[2]), int(words[3], 16), uid
            wanted.setdefault(numbers, set()).add(words[4])
        elif kind == _WAITER:
            waiters[int(words[0], 16), int(words[1]), int(words[2], 16), uid] = words[3]
    tickets = []
    for (since, pid, gpus, space, uid), uuids in wanted.items():
        if 0 < gpus <= len(uuids) and 0 < pid <= _HIGHEST_PID:
            run = waiters.get((since, pid, space, uid), "")
            tickets.append(Ticket(since, pid, gpus, frozenset(uuids), space, uid, run))
    leases = {uuid: _holder(uid, named.get((mark(uuid), uid), ())) for uuid, uid in locks.items()}
    return LeaseState(leases, tuple(sorted(tickets, key=lambda each: each[:2])))


def _read_name(name: bytes) -> Tuple[str, Sequence[str]]:
    """What a socket says and its words; empty for a name that no run would give it."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return "", ()
    kind = text[: text.find("/") + 1]
    found = _NAMES[kind].fullmatch(text) if kind in _NAMES else None
    return (kind, found.groups()) if found is not None else ("", ())


def _holder(uid: Optional[int], named: Iterable[Tuple[str, int]]) -> LeaseHolder:
    """Of several names none is believed."""
    found = list(named)
    if len(found) != 1:
        return LeaseHolder(uid, "", None)
    run, pid = found[0]
    return LeaseHolder(uid, run, pid if 0 < pid <= _HIGHEST_PID else None)


def queue_up(gpus: int, uuids: Sequence[str], who: Optional[LeaseHolder] = None) -> Tuple[Ticket, List[socket.socket]]:
    """A place in the queue, for as long as the sockets are open."""
    while True:
        ticket = Ticket(now(), os.getpid(), gpus, frozenset(uuids), _namespace(), os.geteuid())
        key = "%016x-%d-%d-%x" % (ticket.time, ticket.pid, gpus, ticket.namespace)
        sockets = _bind_all(["%s%s/%s" % (_TICKET, key, each) for each in uuids])
        if sockets is None:
            continue
        if who is not None:
            about = "%s%016x-%d-%x/" % (_WAITER, ticket.time, ticket.pid, ticket.namespace)
            sockets += _bind_about(about, who.run)
        return ticket, sockets


def present(tickets: Iterable[Ticket]) -> List[Ticket]:
    """Those whose turn would be taken now: not that of a process that is stopped, or gone while something that it left
    has its sockets. A ticket of another account's process, or from before its process or after now, is a lie. Nothing
    is said against one whose process cannot be seen."""
    space, latest = _namespace(), now() + _ROUNDING
    seen: Dict[int, Optional[_Process]] = {}
    found = []
    for each in tickets:
        if each.time > latest:
            continue
        if each.namespace != 0 and each.namespace == space:
            if each.pid not in seen:
                seen[each.pid] = _look(each.pid)
            process = seen[each.pid]
            if process is None or not process.would_take(each):
                continue
        found.append(each)
    return found


class _Process(NamedTuple):
    """`start` in nanoseconds since the machine started; None and empty where it cannot be seen."""

    state: str = ""
    start: Optional[int] = None
    uid: Optional[int] = None

    def would_take(self, ticket: Ticket) -> bool:
        if self.state in ("T", "Z", "X") or (self.start is not None and ticket.time < self.start - _ROUNDING):
            return False
        return self.uid is None or ticket.uid is None or self.uid == ticket.uid


def _look(pid: int) -> Optional[_Process]:
    """None if there is no such process. Other users' processes may be hidden in /proc."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as source:
            words = source.read(1 << 12).rpartition(b")")[2].split()
        with open("/proc/%d/status" % pid, "rb") as source:
            uids = re.search(rb"^Uid:\s+[0-9]+\s+([0-9]+)", source.read(1 << 16), re.MULTILINE)
        start = int(words[19]) * 10**9 // os.sysconf("SC_CLK_TCK")
        return _Process(words[0].decode("ascii"), start, None if uids is None else int(uids.group(1)))
    except (OSError, ValueError, IndexError):
        return None if _is_gone(pid) else _Process()


def take(uuids: Sequence[str], who: LeaseHolder) -> Optional[List[socket.socket]]:
    """Lease all of them, for as long as the sockets are open, or none: None if another run was quicker."""
    sockets = _bind_all([_LOCK + each for each in uuids])
    if sockets is None:
        return None
    for each in uuids:
        sockets += _bind_about("%s%s/%d/" % (_HOLDER, mark(each), who.pid or 0), who.run)
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
    """Signals nothing."""
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
