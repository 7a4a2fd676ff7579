"""Which abstract sockets there are, by both ways that the kernel has to tell."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from holdfast.farside.system import unix_sockets
from holdfast.farside.system.unix_sockets import BoundSocket, bound, listed


@pytest.fixture
def prefix() -> bytes:
    return b"holdfast-test-" + os.urandom(6).hex().encode()


@pytest.fixture
def bind(prefix: bytes) -> Iterator[Callable[..., socket.socket]]:
    made: list[socket.socket] = []

    def named(name: bytes, kind: int = socket.SOCK_STREAM) -> socket.socket:
        made.append(socket.socket(socket.AF_UNIX, kind))
        made[-1].bind(b"\0" + prefix + name)
        return made[-1]

    yield named
    for each in made:
        each.close()


@pytest.fixture(params=["diagnostics", "text"])
def uid(request, monkeypatch) -> int | None:
    """What is known of one's own sockets by this way."""
    if request.param == "text":
        monkeypatch.setattr(unix_sockets, "_NETLINK_SOCK_DIAG", 29)  # no such protocol
        return None
    return os.geteuid()


def test_sockets_are_known_by_name_and_account(bind, prefix, uid):
    bind(b"/one"), bind(b"/\xff two")
    assert sorted(bound(prefix)) == [BoundSocket(prefix + b"/one", uid), BoundSocket(prefix + b"/\xff two", uid)]
    assert bound(prefix + b"/o") == [BoundSocket(prefix + b"/one", uid)]


def test_sockets_of_other_types_have_names_of_their_own(bind, prefix, uid):
    bind(b"x", socket.SOCK_DGRAM), bind(b"x", socket.SOCK_SEQPACKET)
    assert bound(prefix) == []
    bind(b"x")
    assert bound(prefix) == [BoundSocket(prefix + b"x", uid)]


def test_a_line_in_a_name_is_no_line(bind, prefix, uid):
    bind(b"a\n @" + prefix + b"fake"), bind(b"b\n1: 2 3 4 0001 01 5 @" + prefix)
    assert all(each.name.split(b"\n")[0] in (prefix + b"a", prefix + b"b") for each in bound(prefix))
    assert len(bound(prefix)) == 2


def test_a_connection_that_nobody_accepts_does_not_pass_for_roots(bind, prefix):
    bind(b"x").listen(1)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(b"\0" + prefix + b"x")
        assert bound(prefix) == [BoundSocket(prefix + b"x", os.geteuid())]


def test_many_sockets_are_all_there(bind, prefix, uid):
    for number in range(600):
        bind(b"%d" % number)
    assert {each.name for each in bound(prefix)} == {prefix + b"%d" % number for number in range(600)}


def test_the_text_may_be_cut_anywhere():
    whole = b"ffff000000000000: 00000002 00000000 00000000 0001 01 12345 @ab\n"
    assert listed(b"Num RefCount\n" + whole, b"a") == [BoundSocket(b"ab", None)]
    assert [listed(whole[:end], b"a") for end in range(len(whole) - 3)] == [[]] * (len(whole) - 3)


def test_a_kernel_that_answers_in_another_way_is_not_believed(bind, prefix, monkeypatch, tmp_path):
    bind(b"x")
    assert bound(prefix) != []
    monkeypatch.setattr(unix_sockets, "_SOCKET", struct.Struct("=4096s"))
    monkeypatch.setattr(unix_sockets, "SOCKETS", str(tmp_path / "none"))
    assert bound(prefix) == []
