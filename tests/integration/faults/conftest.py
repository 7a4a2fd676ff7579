"""The suites of faults run on every target in TARGETS, with a few seeds in `make test` and hundreds in `make soak`."""

from __future__ import annotations

import random

import pytest
from runs.conftest import bench, obeying_modes  # noqa: F401 - fixtures for the suites here

SEEDS, SOAK_SEEDS = 20, 300
TARGETS = ("local",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        few = list(range(SEEDS))
        many = [pytest.param(each, marks=pytest.mark.soak) for each in range(SEEDS, SEEDS + SOAK_SEEDS)]
        metafunc.parametrize("seed", few + many)
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", TARGETS)


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)
