"""Socket names are read as they were written; other sockets are ignored."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence

import pytest

from holdfast.farside.gpu.lease import registry
from holdfast.farside.gpu.lease.registry import LeaseHolder, LeaseState, mark, parse

LINE = "0000000000000000: 00000002 00000000 00000000 0001 01 12345 "
ONE = LeaseHolder(1000, "mine_1", 4242)


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
    assert set(uuids) & state.taken == set(uuids[:2])
    assert [state.holder(each) for each in uuids] == [ONE, ONE, None]
    registry.close(taken)
    assert not set(uuids) & registry.read().taken


def test_a_ticket_is_seen_by_others_until_its_sockets_are_closed(uuids, opened):
    ticket, sockets = registry.queue_up(2, uuids)
    opened += sockets
    assert ticket in registry.read().tickets
    assert ticket.time <= registry.now()
    registry.close(sockets)
    assert ticket not in registry.read().tickets


def test_a_long_name_of_a_run_is_cut_from_its_left_and_the_lock_counts(uuids, take):
    take(uuids[:1], LeaseHolder(4294967294, "r" * 140 + "_1794774034208", 4194304))
    holder = registry.read().holder(uuids[0])
    assert holder is not None
    assert holder.uid == 4294967294
    assert len(holder.run) > 50 and holder.run.startswith("~rr") and holder.run.endswith("_1794774034208")


@pytest.mark.parametrize(("name", "is_cut"), [("iris", False), ("p" * 90, True), ("r" * 200, True), ("ü" * 90, True)])
def test_a_waiting_run_is_named_and_a_name_that_is_too_long_does_not_cost_its_place(uuids, opened, name, is_cut):
    ticket, sockets = registry.queue_up(128, uuids, LeaseHolder(4294967294, f"{name}_1794774034208", 7))
    opened += sockets
    (found,) = [each for each in registry.read().tickets if each.usable == frozenset(uuids)]
    assert (found.time, found.uid) == (ticket.time, 4294967294)
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


def test_other_sockets_and_odd_names_are_left_alone():
    names = ["@/tmp/.X11-unix/X0", "/run/x", "@holdfast-gpu-of/1/2", "@holdfast-gpu-of/ab/x/y/z", "@holdfast-gpux", ""]
    names += [f"@holdfast-gpu-wants/{each}" for each in ("1", "xyz-1-1-1/GPU-1", "1-1-1/GPU-1")]
    assert parse("Num RefCount\n" + "".join(f"{LINE}{name}\n" for name in names)) == LeaseState(frozenset(), (), {})


def test_names_of_instances_may_have_slashes():
    uuid = "MIG-GPU-11111111-2222-3333-4444-555555555555/7/0"
    found = parse(f"{LINE}@holdfast-gpu/{uuid}\n{LINE}@holdfast-gpu-of/{mark(uuid)}/7/8/a/b\n")
    assert found.holder(uuid) == LeaseHolder(7, "a/b", 8)
    (ticket,) = parse(f"{LINE}@holdfast-gpu-wants/0000000000000010-5-2-1f/{uuid}\n").tickets
    assert ticket[:5] == (16, 5, 2, frozenset([uuid]), 31)


def test_the_longest_name_of_a_ticket_is_short_enough(opened, monkeypatch):
    uuid = f"MIG-GPU-{os.urandom(4).hex()}-2222-3333-4444-555555555555/13/0"
    monkeypatch.setattr(os, "getpid", lambda: 2**22)
    monkeypatch.setattr(registry, "_namespace", lambda: 0xFFFFFF)
    ticket, sockets = registry.queue_up(128, [uuid])
    opened += sockets
    assert ticket in registry.read().tickets


def test_a_process_of_another_namespace_is_not_taken_for_one_of_this(uuids):
    mine, sockets = registry.queue_up(1, uuids)
    registry.close(sockets)
    gone = mine._replace(pid=2**22 + 5)  # no process has that number
    assert registry.is_away(gone) and registry.is_here(gone)
    for elsewhere in (mine.namespace ^ 1, 0):
        assert not registry.is_away(gone._replace(namespace=elsewhere))
        assert not registry.is_here(gone._replace(namespace=elsewhere))
    assert not registry.is_away(mine)
