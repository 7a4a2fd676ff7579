"""Socket names are read as they were written; other sockets are ignored."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence

import pytest

from holdfast.farside.gpu.lease import registry
from holdfast.farside.gpu.lease.registry import LeaseHolder, LeaseState, mark, parse
from holdfast.farside.system.unix_sockets import BoundSocket, bound

ONE = LeaseHolder(os.geteuid(), "mine_1", 4242)


def of(uid: int | None, *names: str) -> list[BoundSocket]:
    """Sockets that an account made."""
    return [BoundSocket(each.encode(), uid) for each in names]


@pytest.fixture
def uuids() -> list[str]:
    """Of devices with unique UUIDs."""
    return [f"GPU-{os.urandom(4).hex()}-{number:04x}-4000-8000-000000000000" for number in range(3)]


@pytest.fixture
def opened() -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    yield sockets
    registry.close(sockets)


@pytest.fixture
def take(opened: list[socket.socket]) -> Callable[..., Sequence[socket.socket]]:
    def make(uuids: Sequence[str], holder: LeaseHolder = ONE) -> Sequence[socket.socket]:
        taken = registry.take(uuids, holder)
        assert taken is not None
        opened.extend(taken)
        return taken

    return make


def test_all_devices_are_taken_or_none_and_who_has_them_is_known(uuids, take):
    taken = take(uuids[:2])
    assert registry.take(uuids[1:], LeaseHolder(1001, "theirs", 1)) is None
    state = registry.read()
    assert [state.leases.get(each) for each in uuids] == [ONE, ONE, None]
    registry.close(taken)
    assert not set(uuids) & set(registry.read().leases)


def test_a_ticket_is_seen_by_others_until_its_sockets_are_closed(uuids, opened):
    ticket, sockets = registry.queue_up(2, uuids)
    opened += sockets
    assert ticket in registry.read().tickets
    assert ticket.time <= registry.now()
    registry.close(sockets)
    assert ticket not in registry.read().tickets


def test_a_long_name_of_a_run_is_cut_from_its_left_and_the_lock_counts(uuids, take):
    take(uuids[:1], LeaseHolder(None, "r" * 140 + "_1794774034208", 4194304))
    holder = registry.read().leases[uuids[0]]
    assert holder.uid == os.geteuid()
    assert len(holder.run) > 50 and holder.run.startswith("~rr") and holder.run.endswith("_1794774034208")


@pytest.mark.parametrize(("name", "is_cut"), [("iris", False), ("p" * 90, True), ("r" * 200, True), ("ü" * 90, True)])
def test_a_waiting_run_is_named_and_a_name_that_is_too_long_does_not_cost_its_place(uuids, opened, name, is_cut):
    ticket, sockets = registry.queue_up(3, uuids, LeaseHolder(None, f"{name}_1794774034208", 7))
    opened += sockets
    (found,) = [each for each in registry.read().tickets if each.usable == frozenset(uuids)]
    assert (found.time, found.uid) == (ticket.time, os.geteuid())
    assert found.run.endswith("_1794774034208")
    assert (found.run != f"{name}_1794774034208") is is_cut


def test_leases_are_not_inherited_by_what_is_executed(uuids, take, opened):
    take(uuids)
    opened += registry.pair()
    assert not any(os.get_inheritable(each.fileno()) for each in opened)


def test_a_guardian_that_is_gone_does_not_take_a_lease(uuids, take, opened):
    taken = take(uuids)
    held, given = registry.pair()
    opened.append(given)
    assert registry.hand_over(given, taken)
    held.close()
    assert not registry.hand_over(given, taken)


UUID = "GPU-11111111-2222-3333-4444-555555555555"
NOW = f"{5 * 10**9:016x}"
ODD_NAMES = {
    "another program's": ["/tmp/.X11-unix/X0", "holdfast-gpux", "holdfast-gpu", "holdfast-gpu/"],
    "a holder that is cut": ["holdfast-gpu-of/1/2", f"holdfast-gpu-of/{mark(UUID)}/7", "holdfast-gpu-of/ab/7/mine_1"],
    "a ticket that is cut": ["holdfast-gpu-wants/1", f"holdfast-gpu-wants/{NOW}-5-1-0/"],
    "no number": [f"holdfast-gpu-wants/{each}-1-0/{UUID}" for each in ("xyz-1", f"{NOW}-x", f"{NOW}--1", f"{NOW}-1_0")],
    "digits of another script": [f"holdfast-gpu-wants/{NOW}-\u0661-1-0/{UUID}"],
    "no process has it": [
        f"holdfast-gpu-wants/{NOW}-{each}-1-0/{UUID}" for each in (0, 2**22 + 1, 9999999, 2**31, 2**64)
    ],
    "no GPUs, or more than it could use": [f"holdfast-gpu-wants/{NOW}-5-{each}-0/{UUID}" for each in (0, 2, 9**9)],
    "too large a time": [f"holdfast-gpu-wants/{2**64:x}-5-1-0/{UUID}", f"holdfast-gpu-wants/{'9' * 60}-5-1-0/{UUID}"],
    "escapes": [f"holdfast-gpu/{UUID}\x1b[2J", f"holdfast-gpu-of/{mark(UUID)}/7/x\x1b]0;y\a", "holdfast-gpu/\n"],
    "a sentence": [f"holdfast-gpu-of/{mark(UUID)}/7/a of root; GPU 1", f"holdfast-gpu-waits/{NOW}-5-0/a b"],
}


@pytest.mark.parametrize("names", ODD_NAMES.values(), ids=ODD_NAMES)
def test_names_that_no_run_gives_are_ignored(names):
    assert parse(of(1000, *names)) == LeaseState({}, ())
    assert parse([BoundSocket(f"holdfast-gpu/{UUID}".encode() + each, 1000) for each in (b"\xff", b"\0")]).leases == {}


def test_names_of_instances_may_have_slashes():
    uuid = "MIG-GPU-11111111-2222-3333-4444-555555555555/7/0"
    found = parse(of(7, f"holdfast-gpu/{uuid}", f"holdfast-gpu-of/{mark(uuid)}/8/b"))
    assert found.leases == {uuid: LeaseHolder(7, "b", 8)}
    (ticket,) = parse(of(7, f"holdfast-gpu-wants/0000000000000010-5-1-1f/{uuid}")).tickets
    assert ticket == (16, 5, 1, frozenset([uuid]), 31, 7, "")


@pytest.mark.parametrize(
    ("names", "holder"),
    [
        (of(7, f"holdfast-gpu-of/{mark(UUID)}/8/mine_1"), LeaseHolder(7, "mine_1", 8)),
        (of(8, f"holdfast-gpu-of/{mark(UUID)}/8/mine_1"), LeaseHolder(7, "", None)),
        (of(None, f"holdfast-gpu-of/{mark(UUID)}/8/mine_1"), LeaseHolder(7, "", None)),
        (of(7, *(f"holdfast-gpu-of/{mark(UUID)}/8/{each}" for each in "ab")), LeaseHolder(7, "", None)),
        (of(7, f"holdfast-gpu-of/{mark(UUID)}/0/mine_1"), LeaseHolder(7, "mine_1", None)),
    ],
    ids=["the holder says", "another account says", "nobody knows who says", "two say", "no process"],
)
def test_who_holds_a_lease_is_said_by_the_account_that_made_the_lock(names, holder):
    assert parse([*of(7, f"holdfast-gpu/{UUID}"), *names]).leases == {UUID: holder}


def test_an_account_adds_nothing_to_the_ticket_of_another():
    key, other = f"holdfast-gpu-wants/{NOW}-5-1-0", UUID.replace("5", "6")
    says = f"holdfast-gpu-waits/{NOW}-5-0"
    state = parse([*of(7, f"{key}/{UUID}", f"{says}/mine"), *of(8, f"{key}/{other}", f"{says}/hers")])
    assert {(each.uid, each.usable, each.run) for each in state.tickets} == {
        (7, frozenset([UUID]), "mine"),
        (8, frozenset([other]), "hers"),
    }


def test_the_longest_name_of_a_ticket_is_short_enough(opened, monkeypatch):
    uuid = f"MIG-GPU-{os.urandom(4).hex()}-2222-3333-4444-555555555555/13/0"
    monkeypatch.setattr(os, "getpid", lambda: 2**22)
    monkeypatch.setattr(registry, "_namespace", lambda: 0xFFFFFF)
    _, sockets = registry.queue_up(128, [uuid])
    opened += sockets
    assert [each for each in bound(b"holdfast-gpu-wants/") if each.name.endswith(f"-128-ffffff/{uuid}".encode())]


def test_a_process_of_another_namespace_is_not_taken_for_one_of_this(uuids):
    mine, sockets = registry.queue_up(1, uuids)
    registry.close(sockets)
    gone = mine._replace(pid=2**22 + 5)  # no process has that number
    assert registry.present([gone, mine]) == [mine]
    elsewhere = [gone._replace(namespace=each) for each in (mine.namespace ^ 1, 0)]
    assert registry.present(elsewhere) == elsewhere


def test_a_ticket_is_of_its_accounts_process_and_from_its_time(uuids):
    mine, sockets = registry.queue_up(1, uuids)
    registry.close(sockets)
    lies = [mine._replace(time=0), mine._replace(time=registry.now() + 10**12), mine._replace(uid=os.geteuid() + 1)]
    assert registry.present([*lies, mine]) == [mine]
