"""The suites of faults run on every target in TARGETS, with a few seeds in `make test` and hundreds in `make soak`.

A module whose faults are of one target only has TARGETS of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from remote.benches import FarBench
from remote.conftest import box, boxes, client, kit_folder  # noqa: F401 - fixtures for the suites here
from runs.conftest import Bench, obeying_modes  # noqa: F401
from runs.conftest import bench as bench_here  # noqa: F401

SOAK_SEEDS = 300
TARGETS = ("local", "remote")
SEEDS = {"local": 20, "remote": 4}
"""What differs on a box is the link, and that has a suite of its own."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    targets = getattr(metafunc.module, "TARGETS", TARGETS)
    names = [name for name in ("target", "seed") if name in metafunc.fixturenames]
    if "seed" not in names:
        if names:
            metafunc.parametrize("target", targets)
        return
    chosen = []
    for target in targets if "target" in names else ("local",):
        for seed in range(SEEDS["local"] + SOAK_SEEDS):
            marks = [] if seed < SEEDS[target] else [pytest.mark.soak]
            chosen.append(pytest.param(*(target, seed)[-len(names) :], marks=marks))
    metafunc.parametrize(names, chosen)


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A project whose runs go to the test's target; where a test has none, to this machine."""
    here: Bench = request.getfixturevalue("bench_here")
    if "target" not in request.fixturenames or request.getfixturevalue("target") == "local":
        yield here
        return
    made = request.getfixturevalue("box")("remote")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    bench = FarBench(here.root, made.home, here.command, made)
    bench.attach(made)
    yield bench
