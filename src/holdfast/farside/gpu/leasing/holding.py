"""How leases live exactly as long as their run: the guardian, which outlives everything else, holds them unseen.

The supervisor gets a lease long after it was forked. It sends the sockets to its guardian, which never takes them:
descriptors on their way exist for as long as somebody could receive them. So the guardian needs to do nothing, and
cannot leak them to anybody."""

import array
import socket
from typing import Sequence, Tuple


def pair() -> Tuple[socket.socket, socket.socket]:
    """Made by the guardian before it forks: the end that it keeps, and the one for its supervisor. Each closes the
    other's; the guardian's is never read. Nothing that is executed inherits either."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def hand_over(given: socket.socket, sockets: Sequence[socket.socket]) -> bool:
    """Let the guardian hold them too. False where it is gone, or the system refuses: then the lease ends with the
    caller, who keeps the sockets in any case."""
    if not sockets:
        return True
    descriptors = array.array("i", [each.fileno() for each in sockets])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors.tobytes())]
    try:
        return given.sendmsg([b"\0"], rights, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) == 1
    except OSError:
        return False
