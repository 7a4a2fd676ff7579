"""Whose turn it is, for any queue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.farside.gpu.leasing.queue import Ticket, allocate, before

DEVICES = ("a", "b", "c", "d")


def ticket(time: int, gpus: int = 1, usable: str = "abcd") -> Ticket:
    return Ticket(time, time, gpus, frozenset(usable))


def test_the_first_has_the_first_devices_and_the_next_waits_until_it_is_gone() -> None:
    first, second = ticket(1, gpus=2), ticket(2)
    assert allocate([first, second], first, DEVICES) == ("a", "b")
    assert allocate([first, second], second, DEVICES) is None
    assert allocate([second], second, ["c"]) == ("c",)


def test_one_that_wants_more_than_is_free_keeps_those_behind_it_waiting() -> None:
    large, small = ticket(1, gpus=3), ticket(2)
    assert allocate([large, small], large, ["a", "b"]) is None
    assert allocate([large, small], small, ["a", "b"]) is None


def test_a_later_one_takes_what_those_before_it_cannot_use() -> None:
    large, small = ticket(1, usable="ab"), ticket(2)
    assert allocate([large, small], small, ["a", "b", "d"]) == ("d",)
    assert [each.time for each in before([large, small], small)] == [1]
    assert before([large, ticket(2, usable="cd")], ticket(2, usable="cd")) == []


def test_those_that_came_at_the_same_moment_are_in_the_order_of_their_processes() -> None:
    one, two = Ticket(5, 10, 1, frozenset("a")), Ticket(5, 11, 1, frozenset("a"))
    assert allocate([two, one], one, ["a"]) == ("a",)
    assert allocate([two, one], two, ["a"]) is None


tickets = st.lists(
    st.builds(
        Ticket,
        st.integers(0, 5),
        st.integers(0, 10**6),
        st.integers(1, 4),
        st.frozensets(st.sampled_from(DEVICES), min_size=1),
    ),
    max_size=8,
    unique_by=lambda each: each[:2],
)


@given(tickets, st.sets(st.sampled_from(DEVICES)))
def test_nobody_is_given_what_another_is_given_and_the_first_who_can_be_served_is(
    waiting: list[Ticket], free: set[str]
) -> None:
    given_out = {each: allocate(waiting, each, sorted(free)) for each in waiting}
    had = [uuid for uuids in given_out.values() for uuid in uuids or ()]
    assert len(had) == len(set(had)) and set(had) <= free
    for each, uuids in given_out.items():
        assert uuids is None or (len(uuids) == each.gpus and set(uuids) <= each.usable)
    for first in sorted(waiting)[:1]:
        assert (given_out[first] is not None) == (len(free & first.usable) >= first.gpus)
