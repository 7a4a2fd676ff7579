"""The page of `--dry-run`."""

from __future__ import annotations

import pytest

from holdfast.containers import Docker, Exact, Names
from holdfast.farside.gpu.request import GpuRequest
from holdfast.plan import Command, ContainerPlan, Hole, Plan, RunLimits, text
from holdfast.presenting.plan_page import plan_lines
from holdfast.project.compute import ComputeTarget

TARGET = ComputeTarget(
    "gpu",
    "docker",
    base_docker_image="python:3.12",
    nvidia_docker=True,
    user_managed_environment=True,
    volumes=("~/sets:/data", "/check points:/c:rw"),
    memory="8g",
    docker_arguments=("--label", "a=b c"),
)
PAGE = """\
snapshot     s
directory    <work>
share        <home>/share/p/
time limit   none
grace        10s
secrets      none
GPUs         as the script finds them
container    python:3.12
             called holdfast-<run>-p
             with the GPUs
             shared memory: half of what the machine has
             <home>/share/p/ is found at /azureml-share/
             <account>/sets is found at /data, read-only
             '/check points' is found at /c
             options: --network host --memory 8g --label 'a=b c'
environment  the image's own Python (python3)
variables
             A=1
command      <python> train.py
"""


def page(container: ContainerPlan) -> str:
    command = Command((text(Hole.PYTHON), text("train.py")), {"A": text("1")}, text(Hole.WORK), text(Hole.PYTHON))
    share = text(Hole.HOME, "/share/p")
    plan = Plan("<run>", "p", "g", "s", (), share, command, RunLimits(), container=container)
    return "\n".join(plan_lines(plan)) + "\n"


def test_the_container_of_a_run_is_shown_with_all_that_it_is_given():
    assert page(Docker(TARGET).plan(Names("<run>", "p", "iris"))) == PAGE


def test_the_image_of_another_run_is_shown_by_name_and_id():
    exact = Exact("sha256:ab", "python:3.11", None)
    docker = Docker(ComputeTarget("gpu", "docker", shm_size="2g"))
    shown = page(docker.plan(Names("<run>", "p", "iris"), exact)).splitlines()
    assert "container    python:3.11, exactly sha256:ab" in shown
    assert "             without GPUs: nvidiaDocker is not written" in shown
    assert "             shared memory: 2g" in shown


@pytest.mark.parametrize(
    ("gpu", "shown"),
    [
        (
            GpuRequest(2, True, 8_000_000_000, 1800.0, 60.0, True, "`--gpus 2`"),
            [
                "GPUs         2, for this run alone (--gpus 2)",
                "             required: without one the script is not started",
                "             with 8 GB (7.5 GiB) of free memory each",
                "             ended after 30m without GPU work",
                "             noticed after 1m with neither output nor GPU work",
            ],
        ),
        (
            GpuRequest("all", by="`nvidiaDocker: true` in a.compute"),
            ["GPUs         all, for this run alone (nvidiaDocker: true in a.compute)"],
        ),
        (GpuRequest(0, by="`--gpus 0`"), ["GPUs         none: they are hidden from the script (--gpus 0)"]),
        (
            GpuRequest(require=True, by="`--require-gpu`"),
            ["GPUs         as the script finds them, one is required (--require-gpu)"],
        ),
        (
            GpuRequest(quiet_after=None),
            [
                "GPUs         as the script finds them",
                "             nothing is said of a run that neither prints nor computes",
            ],
        ),
    ],
)
def test_what_is_asked_of_the_gpus_is_shown_with_who_asks(gpu, shown):
    command = Command((text(Hole.PYTHON), text("train.py")), {}, text(Hole.WORK), text(Hole.PYTHON))
    lines = plan_lines(Plan("<run>", "p", "g", "s", (), text("/"), command, RunLimits(), gpu=gpu))
    begin = lines.index("secrets      none") + 1
    assert lines[begin : begin + len(shown)] == shown
    assert lines[begin + len(shown)].startswith("environment  ")


def test_a_preparation_asks_nothing_of_gpus():
    assert "GPUs" not in str(plan_lines(Plan("<run>", "p", "g", "s", (), text("/"), None, RunLimits())))
