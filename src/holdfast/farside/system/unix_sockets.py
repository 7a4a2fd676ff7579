"""The abstract Unix sockets of this network namespace, with the accounts that made them, as the kernel tells.

Names are the words of whoever bound them. The kernel's socket diagnostics (sock_diag(7)) give each by itself, whatever
bytes are in it, and since Linux 5.3 the account that made its socket. Nothing connects to a socket for that: a
connection that nobody accepts stays with a listener, so that any account could fill up its queue. Where diagnostics are
missing, the text of /proc/net/unix has the names.
"""

import re
import socket
import struct
from typing import Iterator, List, NamedTuple, Optional

SOCKETS = "/proc/net/unix"
_LINE = re.compile(rb"^[0-9A-Fa-f]+: (?:[0-9A-F]{8} ){3}0001 [0-9A-F]{2} +[0-9]+ @(.+)$", re.MULTILINE)
"""Of a stream socket; `@` stands for the zero that an abstract name begins with."""
_MOST_READ = 1 << 24
"""Bytes of either list: more than 100,000 sockets. Those behind are not seen."""

_NETLINK_SOCK_DIAG = 4
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBHIIIII")
_SOCKET, _ATTRIBUTE, _NUMBER = struct.Struct("=BBBBIII"), struct.Struct("=HH"), struct.Struct("=I")
_BY_FAMILY, _REQUEST_AND_DUMP = 20, 0x301
_DONE = 3
_ALL = 0xFFFFFFFF
_SHOW_NAME, _SHOW_UID = 0x1, 0x40
_NAME, _UID = 0, 7
_CONNECTED = 1
_PATIENCE = 5.0
_BUFFER = 1 << 17


class BoundSocket(NamedTuple):
    """`name` without its leading zero; `uid` is the account that made the socket, None where the kernel does not
    tell."""

    name: bytes
    uid: Optional[int]


def bound(prefix: bytes) -> List[BoundSocket]:
    """Stream sockets whose names begin so. Empty if the system does not list its sockets."""
    try:
        return [each for each in _diagnosed() if each.name.startswith(prefix)]
    except (OSError, struct.error):  # this kernel does not answer, or not so
        return listed(_text(), prefix)


def listed(text: bytes, prefix: bytes) -> List[BoundSocket]:
    """The same of /proc/net/unix. A name can have line feeds: a part of it passes for a line only if it is as long as
    the kernel's own lines are, for which names of GPUs leave no room."""
    return [BoundSocket(each, None) for each in _LINE.findall(text) if each.startswith(prefix)]


def _text() -> bytes:
    try:
        with open(SOCKETS, "rb") as source:
            return source.read(_MOST_READ)
    except OSError:
        return b""


def _diagnosed() -> Iterator[BoundSocket]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_PATIENCE)
        asked = _REQUEST.pack(socket.AF_UNIX, 0, 0, _ALL, 0, _SHOW_NAME | _SHOW_UID, _ALL, _ALL)
        kernel.send(_HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST_AND_DUMP, 1, 0) + asked)
        seen = 0
        while seen < _MOST_READ:
            data, sender = kernel.recvfrom(_BUFFER)
            if sender[0] != 0:
                continue  # not the kernel
            seen += len(data)
            at = 0
            while at < len(data):
                length, kind = _HEADER.unpack_from(data, at)[:2]
                if kind == _DONE:
                    return
                if kind != _BY_FAMILY or length < _HEADER.size + _SOCKET.size:
                    raise OSError("the kernel does not list sockets")
                found = _one(data[at + _HEADER.size : at + length])
                if found is not None:
                    yield found
                at += _aligned(length)


def _one(message: bytes) -> Optional[BoundSocket]:
    """None for sockets of other types, which have names of their own, and for those without an abstract name. A
    connection that its listener has not accepted is not one either: the kernel gives it the listener's name, and to
    root, whoever made it."""
    _, kind_of_socket, state = _SOCKET.unpack_from(message)[:3]
    if kind_of_socket != socket.SOCK_STREAM:
        return None
    name, uid, at = b"", None, _SOCKET.size
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        value = message[at + _ATTRIBUTE.size : at + length]
        if kind == _NAME:
            name = value
        elif kind == _UID:
            (uid,) = _NUMBER.unpack(value)
        at += max(_aligned(length), _ATTRIBUTE.size)
    is_named = name[:1] == b"\0" and not (state == _CONNECTED and uid == 0)
    return BoundSocket(name[1:], uid) if is_named else None


def _aligned(length: int) -> int:
    return (length + 3) & ~3
