"""The suites of faults run on the targets in TARGETS, those with a `moment` at each moment (`kit.suite.moments`).

A module whose faults concern only some targets has its own TARGETS; PRODUCTS are all targets."""

from __future__ import annotations

import pytest

from integration.docker.benches import container_bench  # noqa: F401 - fixtures for the suites here
from integration.docker.conftest import docker, docker_box, docker_template, shared_docker  # noqa: F401
from integration.remote.benches import FarBench
from integration.remote.conftest import box, boxes, client, kit_folder  # noqa: F401
from integration.runs.conftest import Bench, obeying_modes  # noqa: F401
from integration.runs.conftest import bench as bench_here  # noqa: F401
from kit.homes import furnish_account
from kit.suite.moments import has_moments, on_targets

TARGETS = ("local", "remote")
PRODUCTS = ("local", "docker", "remote", "remotedocker")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    targets = getattr(metafunc.module, "TARGETS", TARGETS)
    if "target" in metafunc.fixturenames:
        if has_moments(metafunc):
            on_targets(metafunc, targets)
        else:
            metafunc.parametrize("target", targets)


@pytest.fixture
def kind(target: str) -> str:
    """For `container_bench`: which of the products with containers."""
    return target


@pytest.fixture
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A project whose runs go to the test's target, or to this machine if it has none. Commands that name no target
    mean `local`."""
    target = request.getfixturevalue("target") if "target" in request.fixturenames else "local"
    if target == "local":
        here: Bench = request.getfixturevalue("bench_here")
        return here
    if target in ("docker", "remotedocker"):
        made = request.getfixturevalue("container_bench")
        made.target(name=target)
        for name, value in made.variables.items():
            monkeypatch.setenv(name, value)
        return Bench(made.root, made.home, made.command)
    here = request.getfixturevalue("bench_here")
    far = request.getfixturevalue("box")("remote")
    furnish_account(far.account)
    for name, value in far.environment.items():
        monkeypatch.setenv(name, value)
    bench = FarBench(here.root, far.home, here.command, far)
    bench.attach(far)
    return bench
