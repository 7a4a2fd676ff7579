"""Connections that pass through a link: what is under way in each direction, and when it is due."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from enum import Enum
from typing import NamedTuple


class Way(Enum):
    TO_SERVER = "to server"
    TO_CLIENT = "to client"


class Chunk(NamedTuple):
    due: float
    data: bytes | None
    """Empty: the end. None: a reset."""


class Flow:
    """One direction of one connection."""

    def __init__(self, way: Way, source: socket.socket, target: socket.socket) -> None:
        self.way = way
        self.source = source
        self.target = target
        self.chunks: deque[Chunk] = deque()
        self.queued = 0
        self.has_ended = False
        self.is_blocked = False
        self.is_done = False


class Connection:
    def __init__(self, client: socket.socket, opens_at: float) -> None:
        self.client = client
        self.server: socket.socket | None = None
        self.opens_at = opens_at
        self.is_silent = False
        self.client_heard = False
        self.flows: tuple[Flow, ...] = ()

    def open(self, port: int) -> None:
        self.server = made_ready(socket.create_connection(("127.0.0.1", port), timeout=5))
        self.flows = (
            Flow(Way.TO_SERVER, self.client, self.server),
            Flow(Way.TO_CLIENT, self.server, self.client),
        )

    def close(self, reset: bool) -> None:
        for one in (self.client, self.server):
            if one is not None:
                if reset:
                    with contextlib.suppress(OSError):
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.close()


def made_ready(one: socket.socket) -> socket.socket:
    one.setblocking(False)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one
