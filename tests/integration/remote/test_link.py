"""The kit's link is as bad as requested, and no worse."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit import link
from kit.flows import Way
from kit.link import Link
from kit.waiting import wait_for

pytestmark = pytest.mark.kit


def test_a_link_delays_but_does_not_throttle():
    with _echo() as port, Link(port, delay=0.1) as slow:
        begin = time.monotonic()
        with _connect(slow) as one:
            one.sendall(b"x" * 6_000_000)
            assert len(_receive(one, 6_000_000)) == 6_000_000
        took = time.monotonic() - begin
    assert took >= 0.4  # a round trip for the handshake, one for the echo


def test_a_link_throttles():
    with _echo() as port, Link(port, throttle=200_000) as narrow, _connect(narrow) as one:
        begin = time.monotonic()
        one.sendall(b"x" * 100_000)
        _receive(one, 100_000)
        assert time.monotonic() - begin >= 0.4


@pytest.mark.parametrize("reset", [True, False])
def test_a_cut_drops_every_connection_and_the_next_one_works(reset):
    with _echo() as port, Link(port) as bad:
        with _connect(bad) as one:
            one.sendall(b"hello")
            assert _receive(one, 5) == b"hello"
            bad.cut(reset=reset)
            with pytest.raises(ConnectionResetError) if reset else contextlib.nullcontext():
                assert one.recv(1) == b""
        with _connect(bad) as one:
            one.sendall(b"again")
            assert _receive(one, 5) == b"again"
        assert (bad.counters.connections, bad.counters.cuts) == (2, 1)


def test_a_planned_cut_comes_after_exactly_so_many_bytes():
    with _echo() as port, Link(port) as bad:
        bad.cut_after(1000, Way.TO_CLIENT, reset=False)
        with _connect(bad) as one:
            one.sendall(b"x" * 5000)
            assert len(_receive(one, 5000)) == 1000
        assert bad.counters.to_client == 1000
        with _connect(bad) as one:
            one.sendall(b"x" * 5000)
            assert len(_receive(one, 5000)) == 5000


def test_a_planned_stall_comes_after_exactly_so_many_bytes():
    with _echo() as port, Link(port) as bad, _connect(bad) as one:
        bad.stall_after(1000, Way.TO_CLIENT)
        one.sendall(b"x" * 5000)
        assert len(_receive(one, 1000)) == 1000
        wait_for(lambda: bad.is_stalled and bad.counters.to_server == 5000)
        assert bad.counters.to_client == 1000
        bad.resume()
        assert len(_receive(one, 4000)) == 4000


def test_a_stalled_link_accepts_but_carries_nothing_until_it_is_resumed():
    with _echo() as port, Link(port) as bad, _connect(bad) as old:
        old.sendall(b"one")
        assert _receive(old, 3) == b"one"
        bad.stall()
        old.sendall(b"two")
        with _connect(bad) as new:
            new.sendall(b"six")
            wait_for(lambda: bad.open_connections == 2)
            new.settimeout(0.2)
            with pytest.raises(TimeoutError):
                new.recv(1)
            new.settimeout(60)
            assert bad.counters.to_server == 3
            bad.resume()
            assert _receive(new, 3) == b"six"
        assert _receive(old, 3) == b"two"


def test_a_refusing_link_keeps_what_is_open_and_its_port():
    with _echo() as port, Link(port) as bad, _connect(bad) as one:
        one.sendall(b"one")
        _receive(one, 3)
        bad.refuse()
        with pytest.raises(ConnectionRefusedError):
            _connect(bad)
        one.sendall(b"two")
        assert _receive(one, 3) == b"two"
        bad.accept()
        with _connect(bad) as two:
            two.sendall(b"x")
            assert _receive(two, 1) == b"x"


def test_an_end_is_passed_on_in_each_direction_by_itself():
    with _echo() as port, Link(port, delay=0.02) as slow, _connect(slow) as one:
        one.sendall(b"all")
        one.shutdown(socket.SHUT_WR)
        assert _receive(one, 10) == b"all"
        wait_for(lambda: slow.open_connections == 0)


def test_a_link_to_nowhere_drops_every_connection(free_port):
    with Link(free_port) as bad, pytest.raises(ConnectionResetError), _connect(bad) as one:
        one.recv(1)


def test_turns_count_the_questions_that_waited_for_an_answer():
    with _echo() as port, Link(port, delay=0.02) as slow, _connect(slow) as one:
        for _ in range(5):
            one.sendall(b"question")
            _receive(one, 8)
        assert slow.turns == 4


def test_what_is_said_before_the_answer_has_come_is_no_turn_more():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Link(listener.getsockname()[1]) as plain,
        _connect(plain) as one,
        listener.accept()[0] as other,
    ):
        other.sendall(b"hello")
        assert _receive(one, 5) == b"hello"
        one.sendall(b"a")
        wait_for(lambda: plain.turns == 1)
        one.sendall(b"b")
        assert _receive(other, 2) == b"ab"
        assert plain.turns == 1


def test_a_link_is_a_program_too():
    with _echo() as port:
        argv = [sys.executable, "-m", "kit.link", "--to", str(port), "--delay", "0.01"]
        tests = Path(link.__file__).parent.parent
        with subprocess.Popen(argv, cwd=tests, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            with socket.create_connection(("127.0.0.1", int(program.stdout.readline())), timeout=60) as one:
                one.sendall(b"hello")
                assert _receive(one, 5) == b"hello"
            program.send_signal(signal.SIGTERM)
            counters = json.loads(program.communicate(timeout=60)[0])
    assert (counters["to_server"], counters["to_client"], counters["connections"]) == (5, 5, 1)


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port without a listener, now and later."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@contextlib.contextmanager
def _echo() -> Iterator[int]:
    """The port of an echo server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threads.append(threading.Thread(target=_answer, args=(connection,), daemon=True))
                    threads[-1].start()

        acceptor = threading.Thread(target=serve, daemon=True)
        acceptor.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        acceptor.join(20)
    for thread in threads:
        thread.join(20)


def _answer(connection: socket.socket) -> None:
    with connection, contextlib.suppress(ConnectionError):
        while data := connection.recv(1 << 16):
            connection.sendall(data)


def _connect(to: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", to.port), timeout=60)


def _receive(one: socket.socket, count: int) -> bytes:
    """`count` bytes, or fewer when the other side ended."""
    parts = b""
    while len(parts) < count and (data := one.recv(count - len(parts))):
        parts += data
    return parts
