"""A plan as it travels and is kept: the keys that the far side and readers of `plan.json` rely on."""

from __future__ import annotations

import json

from holdfast.codec import encode
from holdfast.farside.gpu.request import GpuRequest
from holdfast.plan import (
    Command,
    ContainerPlan,
    EnginePlan,
    EnvironmentPlan,
    Hole,
    Plan,
    RunLimits,
    Volume,
    text,
)

COMMAND = Command((text(Hole.PYTHON), text("<work>")), {"A": text(Hole.RUN, "/x")}, text(Hole.WORK), text("python3"))
CONTAINER = ContainerPlan(
    *("docker", "sha256:ab", True, "ubuntu:24.04", False, None, (text("--ipc"), text(Hole.RUN)), "1g"),
    *((Volume(text(Hole.HOME, "/data"), "/data", False),), "/share", "iris_1", {"run": "iris_1"}, None, "a.compute"),
)
ENVIRONMENT = EnvironmentPlan(
    *("ab", "2 packages", "3.11", text(Hole.PYTHON), (("six", "env.yml:3"),), (("a<2", "b"),), ("--pre",), ("--q",)),
    *(("forge",), (("numpy", "env.yml:4"),), "", ({"id": "l", "packages": [["six", "1"]]},), True, False, True),
    *(text(Hole.WORK), text(Hole.HOME, "/uv"), ("t",), ("TOKEN",), "cd"),
)


def test_a_plan_is_written_as_it_always_was():
    plan = Plan("iris_1", "p1", "g1", "a" * 64, (text(Hole.HOME, "/objects"),), text(Hole.HOME), COMMAND, RunLimits())
    expected = {
        "format": 1,
        "run": "iris_1",
        "project": "p1",
        "generation": "g1",
        "snapshot": "a" * 64,
        "stores": [{"join": [{"hole": "home"}, "/objects"]}],
        "share": {"join": [{"hole": "home"}]},
        "command": {
            "argv": [{"join": [{"hole": "python"}]}, "<work>"],
            "environment": {"A": {"join": [{"hole": "run"}, "/x"]}},
            "directory": {"join": [{"hole": "work"}]},
            "python": "python3",
        },
        "limits": {"grace": 10.0, "time": None},
        "environment": None,
        "prepare": True,
        "secrets": [],
        "python": None,
        "container": None,
        "gpu": {
            "gpus": None,
            "require": False,
            "min_memory": None,
            "stop_if_idle": None,
            "quiet_after": 600.0,
            "asked": False,
            "by": "",
        },
        "engine": {"name": "direct"},
        "earlier": None,
        "data": [],
        "place": "",
    }
    assert written(plan) == expected


def test_a_plan_with_a_container_and_an_environment_is_written_as_it_always_was():
    plan = Plan(
        *("iris_1", "p1", "g1", "a" * 64, (), text("/s"), None, RunLimits(1.0, 2.0), ENVIRONMENT, False, ("TOKEN",)),
        *("python3.9", CONTAINER, GpuRequest("all", True, 5, 1.0, None, True, "`--gpus all`"), EnginePlan("queue")),
    )
    found = written(plan)
    assert found["environment"] == {
        "spec": "ab",
        "summary": "2 packages",
        "python": "3.11",
        "interpreter": {"join": [{"hole": "python"}]},
        "requirements": [["six", "env.yml:3"]],
        "constraints": [["a<2", "b"]],
        "options": ["--pre"],
        "arguments": ["--q"],
        "channels": ["forge"],
        "conda": [["numpy", "env.yml:4"]],
        "locked": "",
        "locks": [{"id": "l", "packages": [["six", "1"]]}],
        "exact": True,
        "upgrade": False,
        "rebuild": True,
        "files": {"join": [{"hole": "work"}]},
        "uv": {"join": [{"hole": "home"}, "/uv"]},
        "tools": ["t"],
        "secrets": ["TOKEN"],
        "packages": "cd",
        "projects": [],
    }
    assert found["container"] == {
        "program": "docker",
        "image": "sha256:ab",
        "is_exact": True,
        "known_as": "ubuntu:24.04",
        "is_default": False,
        "gpus": None,
        "options": ["--ipc", {"join": [{"hole": "run"}]}],
        "shm": "1g",
        "volumes": [
            {"source": {"join": [{"hole": "home"}, "/data"]}, "target": "/data", "is_writable": False},
        ],
        "share": "/share",
        "name": "iris_1",
        "labels": {"run": "iris_1"},
        "python": None,
        "file": "a.compute",
    }
    assert found["command"] is None and found["limits"] == {"grace": 1.0, "time": 2.0}
    assert found["gpu"] == {
        "gpus": "all",
        "require": True,
        "min_memory": 5,
        "stop_if_idle": 1.0,
        "quiet_after": None,
        "asked": True,
        "by": "`--gpus all`",
    }
    assert (found["prepare"], found["secrets"], found["python"]) == (False, ["TOKEN"], "python3.9")
    assert found["engine"] == {"name": "queue"}


def written(plan):
    return json.loads(json.dumps(encode(plan)))
