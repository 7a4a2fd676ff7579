"""What the far side answers, as values. What no far side of this version says is a HostError: nothing is taken from
it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from holdfast.errors import HostError
from holdfast.model import Place

CLOCK_OFF = 60.0
"""Seconds by which a host's clock may be off before somebody is told."""


class Greeting(NamedTuple):
    """Who answers, and the time there; `place` None: the machine cannot tell."""

    time: float
    place: Place | None


class Followed(NamedTuple):
    """`missing`: the runs that are not there. `pulse`: something will be heard so often; None: nothing is promised."""

    missing: frozenset[str]
    pulse: float | None


@contextlib.contextmanager
def understood(operation: str) -> Iterator[None]:
    """For the one place that takes an answer apart."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise HostError(
            f"The far side answered `{operation}` in a way that is not understood.",
            f"Try again. Is Holdfast's folder there damaged? ({error!r})",
        ) from error


def greeting(answer: Any) -> Greeting:
    with understood("hello"):
        machine, folder, node = (text(answer.get(name, "")) for name in ("machine", "folder", "host"))
        time = float(answer["time"])
    return Greeting(time, Place(machine, folder, node) if machine and folder else None)


def followed(answer: Any, asked: Collection[str]) -> Followed:
    with understood("follow"):
        missing = frozenset(text(run) for run in answer["missing"])
        pulse = answer.get("alive")
        if missing - set(asked):
            raise ValueError("a run that was not asked about")
        return Followed(missing, None if pulse is None else float(pulse))


def was_given_up(answer: Any) -> bool:
    with understood("give-up"):
        return truth(answer["given_up"])


def text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
        raise TypeError(f"{str(value)[:40]} is no whole number that a machine counts with")
    return value


def seconds(value: object) -> float:
    """A time or a duration that a calendar has: within two thousand years of 1970."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 6e10:
        raise ValueError(f"{value!r} is no number of seconds")
    return float(value)


def rows(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither yes nor no")
    return value
