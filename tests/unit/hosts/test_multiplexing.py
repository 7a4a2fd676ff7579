"""Sockets of shared connections: their names, and whether a master answers."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.hosts import shared_connection


def test_two_ways_to_connect_have_two_sockets_and_a_path_that_is_too_long_none(short):
    one = shared_connection.own_socket(short, ["ssh", "me@gpu1", ""])
    assert one == shared_connection.own_socket(short, ["ssh", "me@gpu1", ""])
    assert one != shared_connection.own_socket(short, ["ssh", "me@gpu2", ""])
    assert shared_connection.own_socket(short / ("x" * 120), ["ssh", "me@gpu1"]) is None


@pytest.fixture
def listener(short: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(short / "s"))
        made.listen()
        yield made


@pytest.mark.parametrize(
    ("greeting", "expected"),
    [(struct.pack(">III", 8, 1, 4), True), (struct.pack(">III", 8, 2, 4), False), (b"\0\0", False), (b"", False)],
)
def test_a_master_is_taken_for_alive_when_it_greets(short, listener, monkeypatch, greeting, expected):
    def greet() -> None:
        link, _ = listener.accept()
        with link:
            link.sendall(greeting)

    monkeypatch.setattr(shared_connection, "PATIENCE", 60.0)
    thread = threading.Thread(target=greet)
    thread.start()
    found = shared_connection.answers(short / "s")
    thread.join()
    assert found is expected


def test_a_master_that_says_nothing_is_not_waited_for(short, listener, monkeypatch):
    monkeypatch.setattr(shared_connection, "PATIENCE", 0.05)
    assert shared_connection.answers(short / "s") is False


def test_a_socket_without_a_listener_is_dead(short, listener):
    listener.close()
    assert shared_connection.answers(short / "s") is False
