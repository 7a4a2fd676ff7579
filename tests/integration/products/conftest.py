"""One bench for all products, and the products on which each story of a run is told.

`make test` tells it on this machine and on `remotedocker`, where most lies between a command and its script;
`make soak` on all four.
"""

from __future__ import annotations

import pytest

from integration.docker.benches import container_bench  # noqa: F401 - fixtures for the stories
from integration.docker.conftest import docker, docker_box, docker_template, shared_docker  # noqa: F401
from integration.remote.benches import far_bench  # noqa: F401
from integration.remote.conftest import box, boxes, client, kit_folder  # noqa: F401
from integration.runs.conftest import Bench, obeying_modes  # noqa: F401
from integration.runs.conftest import bench as bench_here  # noqa: F401
from kit.suite.moments import is_soak

PRODUCTS = ("local", "docker", "remote", "remotedocker")
TOLD_ON = {
    "test_hostile_file_names_travel_both_ways": ("local", "remote"),
    "test_files_go_back_to_where_a_run_by_hand_would_have_put_them": ("local", "remote"),
    "test_only_the_wanted_outputs_come_home_by_themselves": ("local", "remote"),
    "test_outputs_that_are_left_there_are_fetched_when_they_are_wanted_and_not_cleaned_before": ("local", "remote"),
    "test_thousands_of_outputs_with_long_names_come_home": ("remote",),
    "test_an_async_submit_returns_while_the_script_runs_and_logs_follow_it_later": ("local", "remote"),
}
"""Stories that are told elsewhere than on `local` and `remotedocker`: a container does not change them."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if is_soak(metafunc.config):
        metafunc.parametrize("target", [pytest.param(each, marks=pytest.mark.soak) for each in PRODUCTS])
    else:
        metafunc.parametrize("target", TOLD_ON.get(metafunc.function.__name__, ("local", "remotedocker")))


@pytest.fixture
def kind(target: str) -> str:
    """For `container_bench`: which of the products with containers."""
    return target


@pytest.fixture
def bench(target: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return bench_on(target, request, monkeypatch)


def bench_on(target: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A project whose target `local` is of that product: commands that name no target go there."""
    made: Bench
    if target == "local":
        made, variables = request.getfixturevalue("bench_here"), {}
    elif target == "remote":
        made = far = request.getfixturevalue("far_bench")("local")
        variables = far.box.environment
    else:
        made = contained = request.getfixturevalue("container_bench")
        contained.target(name="local")
        variables = contained.variables
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return made
