"""What every container promises: a wrapped command still runs the same thing in the same place."""

from __future__ import annotations

import pytest

from holdfast.containers.bare import Bare
from holdfast.containers.container import Container
from holdfast.plan import Command, Hole, text

CONTAINERS: dict[str, Container] = {"bare": Bare()}
COMMAND = Command((text("python"), text("train.py"), text("a b")), {"NAME": text("value")}, text(Hole.WORK))


@pytest.mark.parametrize("name", sorted(CONTAINERS))
def test_the_script_and_its_arguments_stay_last_and_in_order(name):
    wrapped = CONTAINERS[name].wrap(COMMAND)
    assert wrapped.argv[-3:] == COMMAND.argv


@pytest.mark.parametrize("name", sorted(CONTAINERS))
def test_wrapping_is_pure(name):
    assert CONTAINERS[name].wrap(COMMAND) == CONTAINERS[name].wrap(COMMAND)
