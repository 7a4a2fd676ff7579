"""Measuring side by side: every round measures each contender once, so that a busy minute slows all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class FailedError(Exception):
    """A contender could not be measured; the text says why."""


@dataclass(frozen=True)
class Contender:
    """`measure` does the work once and answers with the figure: seconds, or calls per second."""

    name: str
    measure: Callable[[], float]


@dataclass(frozen=True)
class Figures:
    """What the rounds gave for one contender. Without values, `problem` says why there are none."""

    values: tuple[float, ...]
    problem: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a part of the median: how far a usual round is off."""
        if len(self.values) < 2 or self.median == 0:
            return 0.0
        first, _, third = statistics.quantiles(self.values, n=4, method="inclusive")
        return (third - first) / 2 / abs(self.median)


def interleaved(
    contenders: Sequence[Contender],
    rounds: int,
    warm_up: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Figures]:
    """A B C, A B C, …: `warm_up` rounds that do not count, then `rounds` that do.

    A contender that fails is left out of the rounds that follow, and its problem is kept in place of figures.
    """
    values: dict[str, list[float]] = {each.name: [] for each in contenders}
    problems: dict[str, str] = {}
    for number in range(-warm_up, rounds):
        say("warming up" if number < 0 else f"round {number + 1} of {rounds}")
        for contender in contenders:
            if contender.name in problems:
                continue
            try:
                value = contender.measure()
            except FailedError as error:
                problems[contender.name] = str(error)
                continue
            if number >= 0:
                values[contender.name].append(value)
    return {
        name: Figures((), problems[name]) if name in problems else Figures(tuple(found))
        for name, found in values.items()
    }


def one(value: float) -> Figures:
    """A figure that is not repeated, such as a size."""
    return Figures((value,))
