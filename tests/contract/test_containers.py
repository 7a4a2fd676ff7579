"""What every container promises: its plan has what the far side needs to know, and nothing that was not requested."""

from __future__ import annotations

import json

import pytest

from holdfast.codec import encode
from holdfast.containers import Bare, Container, Docker, Exact, Names
from holdfast.frozen import field_names, replace
from holdfast.project.compute import ComputeTarget

NAMES = Names("iris_1", "ab" * 16, "iris, the `flower`")
EXACT = Exact("sha256:" + "ab" * 32, "python:3.12", None)
FULL = ComputeTarget(
    "gpu",
    "remotedocker",
    "gpu1",
    base_docker_image="python:3.12",
    nvidia_docker=True,
    volumes=("~/a,b:/data", "/x:/y:rw"),
    shm_size="8g",
    memory="4g",
    cpus="2",
    network="bridge",
    docker_arguments=("--label", "a=b c"),
    file="aml_config/gpu.compute",
)
CONTAINERS: dict[str, Container] = {
    "bare": Bare(),
    "docker": Docker(ComputeTarget("docker", "docker", file="aml_config/docker.compute")),
    "docker with all keys": Docker(FULL),
}
each = pytest.mark.parametrize("name", sorted(CONTAINERS))


@each
def test_planning_is_pure(name: str) -> None:
    container = CONTAINERS[name]
    assert container.plan(NAMES) == container.plan(NAMES)
    assert container.plan(NAMES, EXACT) == container.plan(NAMES, EXACT)


@each
def test_a_plan_travels_as_json_and_has_an_image_where_the_container_has_one(name: str) -> None:
    plan = CONTAINERS[name].plan(NAMES)
    assert (plan is not None) is CONTAINERS[name].has_image
    if plan is not None:
        told = json.loads(json.dumps(encode(plan)))
        assert set(told) == set(field_names(plan))
        assert told["image"] and told["file"] and told["share"].endswith("/")


@each
def test_a_container_is_called_after_its_run_and_labelled_with_its_project(name: str) -> None:
    plan = CONTAINERS[name].plan(NAMES)
    if plan is None:
        return
    assert plan.name == "holdfast-iris_1-ababab"
    other = CONTAINERS[name].plan(replace(NAMES, project_id="cd" * 16))
    assert other is not None and other.name != plan.name, "of two projects of one name, in the same millisecond"
    assert plan.labels == {
        "holdfast.run": "iris_1",
        "holdfast.project": "ab" * 16,
        "holdfast.project-name": "iris, the `flower`",
    }


@each
def test_the_image_of_another_run_takes_the_place_of_the_targets_and_of_nothing_else(name: str) -> None:
    usual, exact = CONTAINERS[name].plan(NAMES), CONTAINERS[name].plan(NAMES, EXACT)
    if usual is None:
        assert exact is None
        return
    assert not usual.is_exact and usual.image == usual.known_as
    assert exact == replace(usual, image=EXACT.image, is_exact=True, known_as="python:3.12")
