"""The suites of faults run on the targets in TARGETS, those with a `moment` at each moment (`kit.suite.moments`).

A module whose faults concern other targets has its own TARGETS."""

from __future__ import annotations

import pytest

from integration.docker.benches import container_bench  # noqa: F401 - fixtures for the suites here
from integration.docker.conftest import docker, docker_box, docker_template, shared_docker  # noqa: F401
from integration.products.conftest import bench_on, kind  # noqa: F401
from integration.remote.benches import far_bench  # noqa: F401
from integration.remote.conftest import box, boxes, client, kit_folder  # noqa: F401
from integration.runs.conftest import Bench, obeying_modes  # noqa: F401
from integration.runs.conftest import bench as bench_here  # noqa: F401
from kit.suite.moments import has_moments, on_targets

TARGETS = ("local", "remote")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    targets = getattr(metafunc.module, "TARGETS", TARGETS)
    if "target" in metafunc.fixturenames:
        if has_moments(metafunc):
            on_targets(metafunc, targets)
        else:
            metafunc.parametrize("target", targets)


@pytest.fixture
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A project whose runs go to the test's target, or to this machine if it has none."""
    has_target = "target" in request.fixturenames
    return bench_on(request.getfixturevalue("target") if has_target else "local", request, monkeypatch)
