"""Moments at which a fault strikes, by name: `@pytest.mark.moments("recorded", "created", …)` on a test with `moment`.

`make test` strikes once at each of them, as soon as it is reached. `make soak` goes through them again and again, and
waits a random while at each: `moment.pause(0.3)` returns at once in the first case.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

SOAK_SEEDS = 300


@dataclass(frozen=True)
class Moment:
    """A stage of what happens. With a seed (`make soak`), the fault comes some time after it."""

    stage: str
    number: int
    """Counts up, for a test that varies something else too."""
    is_soak: bool
    chance: random.Random = field(default_factory=random.Random, init=False, compare=False)

    def __post_init__(self) -> None:
        self.chance.seed(self.number)

    def __str__(self) -> str:
        return f"{self.stage}-{self.number}" if self.is_soak else self.stage

    def pause(self, longest: float) -> None:
        if self.is_soak:
            time.sleep(self.chance.uniform(0.0, longest))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "moments(*stages, targets=…): a fault strikes at each; more often in `make soak`"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """For tests with that mark; those that have a `target` too are made by `on_targets`."""
    if has_moments(metafunc) and "target" not in metafunc.fixturenames:
        metafunc.parametrize("moment", [_parameter(metafunc, one) for one in moments(metafunc)], ids=str)


def on_targets(metafunc: pytest.Metafunc, targets: Sequence[str]) -> None:
    """Every moment on the first target and on one of the others, in turn; in `make soak` on all.

    A test that is for some targets only says so: `moments("both owners", targets=("docker", "remotedocker"))`.
    """
    (marker,) = metafunc.definition.iter_markers("moments")
    first, *others = targets = marker.kwargs.get("targets", targets)
    chosen = []
    for one in moments(metafunc):
        # Shifted after every round, so that stages that repeat meet all targets.
        turn = one.number + one.number // len(others) if others else 0
        here = targets if one.is_soak or not others else (first, others[turn % len(others)])
        chosen += [_parameter(metafunc, target, replace(one)) for target in here]
    metafunc.parametrize(("target", "moment"), chosen)


def has_moments(metafunc: pytest.Metafunc) -> bool:
    return next(metafunc.definition.iter_markers("moments"), None) is not None


def moments(metafunc: pytest.Metafunc) -> list[Moment]:
    (stages,) = [marker.args for marker in metafunc.definition.iter_markers("moments")]
    count = SOAK_SEEDS if is_soak(metafunc.config) else len(stages)
    return [Moment(stages[number % len(stages)], number, is_soak(metafunc.config)) for number in range(count)]


def is_soak(config: pytest.Config) -> bool:
    """Whether this is `make soak`; otherwise the many cases are not made."""
    return bool(config.getoption("markexpr") == "soak")


def _parameter(metafunc: pytest.Metafunc, *values: object) -> object:
    marks = [pytest.mark.soak] if is_soak(metafunc.config) else []
    return pytest.param(*values, marks=marks, id="-".join(map(str, values)))
