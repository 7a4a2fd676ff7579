"""Binding a plan: pure, and without effect on what users write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.farside.system.bound_plan import HOLES, bind
from holdfast.plan import Hole, text

FACTS = {name: f"<{name}>" for name in HOLES}


def test_the_far_side_knows_every_hole_that_a_plan_can_have_and_no_other():
    assert {hole.value for hole in Hole} == set(HOLES)
    assert bind(text(Hole.HOME, "/share/", "p").as_json(), FACTS) == "<home>/share/p"
    with pytest.raises(KeyError, match="does not know"):
        bind({"join": [{"hole": "moon"}]}, FACTS)


@given(
    some.recursive(some.text(), lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner), max_leaves=4)
)
def test_what_a_user_wrote_is_never_changed(value):
    wrapped = {"argv": [text(each).as_json() for each in _texts(value)]}
    assert bind(wrapped, FACTS) == {"argv": _texts(value)}


def _texts(value) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value
    return [text for each in inner for text in _texts(each)]


def test_a_variable_that_is_called_like_a_join_is_one():
    variables = {"join": "a", "hole": "home", "OUT": {"join": [{"hole": "home"}, "/join"]}}
    assert bind(variables, {"home": "/h"}) == {"join": "a", "hole": "home", "OUT": "/h/join"}
