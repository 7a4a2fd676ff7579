"""Which run is next, for any queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.farside.gpu.lease.registry import Ticket, allocate, before

DEVICES = ("a", "b", "c", "d")


def ticket(time: int, gpus: int = 1, usable: str = "abcd", pid: int = 0) -> Ticket:
    return Ticket(time, pid or time, gpus, frozenset(usable))


LATER = ticket(9)


@pytest.mark.parametrize(
    ("first", "free", "of_first", "of_later"),
    [
        (ticket(1, gpus=2), DEVICES, ("a", "b"), None),
        (ticket(1, gpus=3), ("a", "b"), None, None),
        (ticket(1, usable="ab"), ("a", "b", "d"), ("a",), ("d",)),
        (ticket(9, pid=5), ("a",), ("a",), None),
    ],
    ids=[
        "the first has the first devices and the next waits until it is gone",
        "one that wants more than is free keeps those behind it waiting",
        "a later one takes what those before it cannot use",
        "those that came at the same moment are in the order of their processes",
    ],
)
def test_whose_turn_it_is(first, free, of_first, of_later):
    for waiting in ([first, LATER], [LATER, first]):
        assert (allocate(waiting, first, free), allocate(waiting, LATER, free)) == (of_first, of_later)
    assert allocate([LATER], LATER, free) == free[:1]


def test_only_those_who_could_use_the_same_are_before_one():
    first, other = ticket(1, usable="ab"), ticket(2, usable="cd")
    assert [each.time for each in before([first, LATER], LATER)] == [1]
    assert before([first, other], other) == []


def test_the_first_to_arrive_is_first_whatever_its_process_id() -> None:
    early, late = Ticket(5, 4000, 1, frozenset("a")), Ticket(6, 10, 1, frozenset("a"))
    assert allocate([early, late], early, ["a"]) == ("a",)
    assert allocate([early, late], late, ["a"]) is None


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
def test_no_device_is_given_twice_and_the_first_that_can_be_served_is(waiting, free):
    given_out = {each: allocate(waiting, each, sorted(free)) for each in waiting}
    had = [uuid for uuids in given_out.values() for uuid in uuids or ()]
    assert len(had) == len(set(had)) and set(had) <= free
    for each, uuids in given_out.items():
        assert uuids is None or (len(uuids) == each.gpus and set(uuids) <= each.usable)
    for first in sorted(waiting)[:1]:
        assert (given_out[first] is not None) == (len(free & first.usable) >= first.gpus)
