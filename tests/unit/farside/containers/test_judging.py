"""What is recorded for a run whose launcher left no message, from what Docker says, or does not say."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.containers import outcome
from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.launcher import LOCK
from unit.farside.programs import program

REFUSED = "echo 'Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?' >&2; exit 1"
GONE = "echo 'Error: No such object: holdfast-r' >&2; exit 1"
EXITED = """echo '{"Status": "exited", "OOMKilled": false}'"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "_VANISHING", 0.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a Docker that never answers; one that answers has as much time as a busy machine needs."""
    monkeypatch.setattr(outcome, "ASK_PATIENCE", 0.1)


def contained(folder: Path, script: str, begun: float = 60.0) -> Any:
    """A run's container as `judging` sees it, begun so many seconds from now, with a `docker` that runs this shell
    script."""
    inside = folder / "inside"
    inside.mkdir()
    (inside / LOCK).touch()
    (folder / "socket").touch()
    environment = {"PATH": os.defpath, "DOCKER_HOST": f"unix://{folder}/socket"}
    return SimpleNamespace(
        docker=DockerClient(str(program(folder / "docker", script)), environment),
        wanted=SimpleNamespace(name="holdfast-r", options=(), file="aml_config/box.compute"),
        inside=str(inside),
        begun=time.time() + begun,
        said=[],
        hear=list,
        remove=lambda: None,
    )


def told(**status: Any) -> list[dict[str, Any]]:
    """The launcher's last words."""
    usual: dict[str, Any] = {
        "code": 0,
        "signal": None,
        "swept": [],
        "count": 0,
        "memory_limit": None,
        "memory_kills": 0,
    }
    return [{"e": "status", "status": {**usual, "owned": True, "outside": None, **status}}]


def judged(found: Any) -> dict[str, Any]:
    ending = outcome.finish(found, lambda seconds: None, False).ending
    assert ending is not None
    return ending


@pytest.mark.parametrize(
    ("script", "reason"), [(REFUSED, "docker-stopped"), (GONE, "container-removed"), (EXITED, "container-stopped")]
)
def test_what_docker_says_is_the_reason(tmp_path, script, reason):
    assert judged(contained(tmp_path, script)) == {"reason": reason, "detail": "", "signal": 9}


@pytest.mark.usefixtures("impatient")
def test_a_docker_that_does_not_answer_has_not_stopped(tmp_path):
    found = judged(contained(tmp_path, "exec sleep 60"))
    assert (found["reason"], found["detail"]) == ("killed", "Docker could not be asked: it does not answer.")


RESTARTED = "sleep 0.05; rm {0}/socket; : > {0}/socket; "


@pytest.mark.parametrize(
    ("first", "restores", "reason"),
    [("", "true", "container-removed"), ("", "false", "docker-stopped"), (RESTARTED, "true", "docker-stopped")],
    ids=["it restores containers", "it does not", "it came after the end"],
)
def test_a_daemon_that_was_restarted_ends_a_run_unless_it_restores_containers(tmp_path, first, restores, reason):
    script = f'{first.format(tmp_path)}case "$1" in info) echo {restores};; *) {GONE};; esac'
    assert judged(contained(tmp_path, script, -60))["reason"] == reason


@pytest.mark.usefixtures("impatient")
def test_a_stop_that_the_launcher_heard_is_a_stop_where_docker_does_not_answer(tmp_path):
    found = contained(tmp_path, "exec sleep 60")
    found.said = told(outside=15)
    assert judged(found)["reason"] == "container-stopped"


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_child_that_had_no_memory_is_noted_however_the_run_ends(tmp_path, is_stopped):
    found = contained(tmp_path, EXITED)
    found.wanted.options = ("--memory", "64m")
    found.said = told(code=None, signal=15, memory_limit=64 << 20, memory_kills=1)
    (note,) = outcome.finish(found, lambda seconds: None, is_stopped).notes
    assert note.startswith("The kernel ended a process of the run because memory ran out.")
    assert note.endswith("The container's limit is 64m: raise `memory` in aml_config/box.compute.")
