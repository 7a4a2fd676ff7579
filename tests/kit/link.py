"""A TCP proxy on loopback that makes a link bad on command: slow, narrow, cut, stalled, refused.

As a program, `PYTHONPATH=tests python -m kit.link --to PORT --delay 0.1` prints the port that it listens on, and at the
end its counters.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

from kit.flows import Chunk, Connection, Flow, Way, made_ready

T = TypeVar("T")


@dataclass(frozen=True)
class Counters:
    """What has passed since the link was made."""

    to_server: int
    """Bytes delivered."""
    to_client: int
    connections: int
    """Accepted, open or not."""
    turns: int
    """How often the client sent something after it received something: the round trips, if nothing overlaps."""
    cuts: int


class Link:
    """A way to `port` on this machine, from the start until `close`. Any thread may call any method."""

    def __init__(self, port: int, delay: float = 0.0, throttle: float | None = None, listen: int = 0) -> None:
        """`delay` is one-way, in seconds; `throttle` is in bytes per second and direction."""
        self._to = port
        self._delay = delay
        self._throttle = throttle
        self._listener = _bound(listen)
        self._listener.listen(128)
        self.port: int = self._listener.getsockname()[1]
        self._connections: list[Connection] = []
        self._passed = {Way.TO_SERVER: 0, Way.TO_CLIENT: 0}
        self._free_at = {Way.TO_SERVER: 0.0, Way.TO_CLIENT: 0.0}
        self._accepted = self._turns = self._cuts = 0
        self._is_refusing = self._is_closed = False
        self._stalled = threading.Event()
        self._planned: _Planned | None = None
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._bell, self._ear = socket.socketpair()
        self._ear.setblocking(False)
        self._thread = threading.Thread(target=self._work, name=f"link to {port}", daemon=True)
        self._thread.start()

    @property
    def counters(self) -> Counters:
        return self._order(
            lambda: Counters(
                self._passed[Way.TO_SERVER], self._passed[Way.TO_CLIENT], self._accepted, self._turns, self._cuts
            )
        )

    @property
    def turns(self) -> int:
        return self.counters.turns

    @property
    def open_connections(self) -> int:
        return self._order(lambda: len(self._connections))

    @property
    def is_stalled(self) -> bool:
        return self._stalled.is_set()

    def slow(self, delay: float = 0.0, throttle: float | None = None) -> None:
        """Change delay and throttle, for what comes from now on."""

        def change() -> None:
            self._delay, self._throttle = delay, throttle

        self._order(change)

    def cut(self, reset: bool = True) -> None:
        """Drop all connections, by RST or else by FIN; data in flight is lost. New ones are accepted."""
        self._order(lambda: self._drop_all(reset))

    def cut_after(self, count: int, way: Way | None = None, reset: bool = True) -> None:
        """Drop all connections once, when exactly `count` more bytes were delivered (`way` None: both together)."""

        self._after(count, way, lambda: self._drop_all(reset))

    def stall_after(self, count: int, way: Way | None = None) -> None:
        """As `stall`, once, when exactly `count` more bytes were delivered."""
        self._after(count, way, self._stalled.set)

    def stall(self) -> None:
        """Deliver nothing, not even ends, until `resume`; connections are still accepted."""
        self._order(self._stalled.set)

    def resume(self) -> None:
        self._order(self._stalled.clear)

    def silence(self) -> None:
        """Like a laptop that woke up in another network: existing connections deliver nothing any more, new ones do."""

        def change() -> None:
            for connection in self._connections:
                connection.is_silent = True

        self._order(change)

    def refuse(self) -> None:
        """New connections are refused until `accept`; those that exist go on."""

        def change() -> None:
            if not self._is_refusing:
                self._is_refusing = True
                quiet = _bound(
                    self.port
                )  # bound but not listening, before the other closes, so that no other process takes the port
                self._listener.close()
                self._listener = quiet

        self._order(change)

    def accept(self) -> None:
        def change() -> None:
            if self._is_refusing:
                self._listener.listen(128)
                self._is_refusing = False

        self._order(change)

    def close(self) -> None:
        """Drop everything and end; a second close does nothing."""
        if self._is_closed:
            return

        def end() -> None:
            self._drop_all(reset=True)
            self._is_closed = True

        self._order(end)
        self._thread.join()
        for one in (self._listener, self._bell, self._ear):
            one.close()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _after(self, count: int, way: Way | None, act: Callable[[], None]) -> None:
        def plan() -> None:
            self._planned = _Planned(self._total(way) + count, way, act)

        self._order(plan)

    def _order(self, act: Callable[[], T]) -> T:
        """Let the link's thread do it: only that thread touches sockets and counters."""
        if self._is_closed:
            return act()
        answer: SimpleQueue[T | BaseException] = SimpleQueue()

        def work() -> None:
            try:
                answer.put(act())
            except BaseException as error:  # noqa: BLE001 - raised in the thread that asked
                answer.put(error)

        self._orders.put(work)
        self._bell.send(b"!")
        got = answer.get(timeout=30)
        if isinstance(got, BaseException):
            raise got
        return got

    def _work(self) -> None:
        while not self._is_closed:
            self._wait()
            with contextlib.suppress(BlockingIOError):
                self._ear.recv(4096)
            while not self._orders.empty():
                self._orders.get()()
            self._admit()
            if not self._stalled.is_set() and not self._is_closed:
                for connection in list(self._connections):
                    if not connection.is_silent:
                        self._carry(connection)

    def _wait(self) -> None:
        """Return when a socket is ready, something is due, or an order came."""
        now = time.monotonic()
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        due: list[float] = []
        if not self._is_refusing:
            poll.register(self._listener, select.POLLIN)
        for connection in self._connections if not self._stalled.is_set() else ():
            if connection.is_silent:
                continue
            if connection.server is None:
                due.append(connection.opens_at)
            wanted: dict[socket.socket, int] = {}
            for flow in connection.flows:
                if self._has_room(flow):
                    wanted[flow.source] = wanted.get(flow.source, 0) | select.POLLIN
                if flow.is_blocked:
                    wanted[flow.target] = wanted.get(flow.target, 0) | select.POLLOUT
                elif flow.chunks:
                    due.append(max(flow.chunks[0].due, self._free_at[flow.way]))
            for one, events in wanted.items():
                poll.register(one, events)
        poll.poll(max(0.0, min(due) - now) * 1000 if due else None)

    def _admit(self) -> None:
        if self._is_refusing or self._is_closed:
            return
        self._listener.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while True:
                client, _ = self._listener.accept()
                self._accepted += 1
                # A handshake takes a round trip, and the server hears of it half a round trip later.
                self._connections.append(Connection(made_ready(client), time.monotonic() + 3 * self._delay))

    def _carry(self, connection: Connection) -> None:
        """Read what there is, deliver what is due."""
        now = time.monotonic()
        try:
            if connection.server is None:
                if now < connection.opens_at:
                    return
                connection.open(self._to)
                # The client sends its first bytes after its half of the handshake, so they have arrived by now.
                self._read(connection, connection.flows[0], now)
            for flow in connection.flows:
                self._read(connection, flow, now + self._delay)
            for flow in connection.flows:
                self._deliver(connection, flow)
        except OSError:
            self._drop(connection, reset=True)
            return
        if all(flow.is_done for flow in connection.flows):
            self._drop(connection, reset=False)

    def _read(self, connection: Connection, flow: Flow, due: float) -> None:
        while self._has_room(flow):
            try:
                data = flow.source.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:  # it comes after what was sent before it
                flow.chunks.append(Chunk(due, None))
                flow.has_ended = True
                return
            if flow.way is Way.TO_SERVER and data and connection.client_heard:
                connection.client_heard = False
                self._turns += 1
            flow.chunks.append(Chunk(due, data))
            flow.queued += len(data)
            flow.has_ended = not data

    def _has_room(self, flow: Flow) -> bool:
        room = 8 << 20 if self._throttle is None else max(1 << 16, int(self._throttle * (self._delay + 0.05)))
        return not flow.has_ended and flow.queued < room

    def _deliver(self, connection: Connection, flow: Flow) -> None:
        flow.is_blocked = False
        while flow.chunks and flow.chunks[0].due <= time.monotonic():
            due, data = flow.chunks[0]
            if data is None:
                raise ConnectionResetError
            if not data:
                flow.chunks.popleft()
                flow.is_done = True
                with contextlib.suppress(OSError):
                    flow.target.shutdown(socket.SHUT_WR)
                return
            allowed = self._allowed(flow.way)
            if allowed == 0:
                return
            try:
                sent = flow.target.send(data[:allowed])
            except BlockingIOError:
                flow.is_blocked = True
                return
            flow.chunks.popleft()
            if sent < len(data):
                flow.chunks.appendleft(Chunk(due, data[sent:]))
            flow.queued -= sent
            self._account(connection, flow.way, sent)

    def _allowed(self, way: Way) -> int:
        """How many bytes may go now."""
        if self._stalled.is_set():
            return 0
        allowed = 1 << 16
        if self._throttle is not None:
            if time.monotonic() < self._free_at[way]:
                return 0
            allowed = max(1, min(allowed, int(self._throttle * 0.01)))
        if self._planned is not None and self._planned.way in (None, way):
            allowed = min(allowed, max(1, self._planned.total - self._total(self._planned.way)))
        return allowed

    def _account(self, connection: Connection, way: Way, sent: int) -> None:
        self._passed[way] += sent
        connection.client_heard = connection.client_heard or way is Way.TO_CLIENT
        if self._throttle is not None:
            # Make up for a late timer, but not for a pause.
            self._free_at[way] = max(self._free_at[way], time.monotonic() - 0.02) + sent / self._throttle
        if self._planned is not None and self._total(self._planned.way) >= self._planned.total:
            act, self._planned = self._planned.act, None
            act()

    def _total(self, way: Way | None) -> int:
        return sum(self._passed.values()) if way is None else self._passed[way]

    def _drop_all(self, reset: bool) -> None:
        self._cuts += 1
        for connection in list(self._connections):
            self._drop(connection, reset)

    def _drop(self, connection: Connection, reset: bool) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            connection.close(reset)


class _Planned(NamedTuple):
    total: int
    way: Way | None
    act: Callable[[], None]


def _bound(port: int) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(("127.0.0.1", port))
    return one


def main() -> None:
    parser = argparse.ArgumentParser(description="A link to a port of this machine that is as bad as wanted.")
    parser.add_argument("--to", type=int, required=True, help="the port that it leads to")
    parser.add_argument("--listen", type=int, default=0, help="the port to listen on (default: any)")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds, one way")
    parser.add_argument("--throttle", type=float, default=None, help="bytes per second and direction")
    given = parser.parse_args()
    # Blocked before the link's thread is made, which inherits it: only `sigwait` sees them.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    with Link(given.to, given.delay, given.throttle, given.listen) as link:
        print(link.port, flush=True)
        signal.sigwait((signal.SIGINT, signal.SIGTERM))
        print(json.dumps(asdict(link.counters)), flush=True)


if __name__ == "__main__":
    main()
