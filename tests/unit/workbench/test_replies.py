"""Answers of a far side that is none of ours: an error that says so, never a traceback."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import HostError
from holdfast.model import Place
from holdfast.workbench import replies
from holdfast.workbench.records import cleaning, importing

NOTHING: list[Any] = [None, True, 7, "text", [], {}, [None], [[]], {"missing": 1}, {"runs": [["a"]], "more": False}]


@pytest.mark.parametrize("answer", NOTHING)
@pytest.mark.parametrize(
    "parse",
    [
        replies.greeting,
        lambda answer: replies.followed(answer, ("run_1",)),
        replies.was_given_up,
        lambda answer: importing._projects(answer if answer != [] else None),
        importing._page,
        cleaning._swept,
        cleaning._size,
    ],
)
def test_an_answer_of_another_shape_is_an_error_of_the_host(parse, answer):
    with pytest.raises(HostError, match="in a way that is not understood"):
        parse(answer)


def test_a_run_that_was_not_asked_about_is_not_missing():
    with pytest.raises(HostError):
        replies.followed({"missing": {"run_2": "gone"}}, ("run_1",))


def test_what_our_own_far_side_answers_is_understood():
    said = {"machine": "ab", "folder": "/home/me/.holdfast", "host": "node1", "time": 5}
    assert replies.greeting(said) == replies.Greeting(5.0, Place("ab", "/home/me/.holdfast", "node1"))
    assert replies.followed({"missing": {"run_1": "gone"}, "alive": 10}, ("run_1",)) == (frozenset({"run_1"}), 10.0)
    assert replies.was_given_up({"given_up": False}) is False


def test_what_an_older_far_side_does_not_say_is_not_known():
    assert replies.greeting({"time": 5.0}).place is None
    assert replies.followed({"missing": {}}, ()).pulse is None
