"""What is recorded of a run whose launcher had no last words, from what Docker says, or does not say."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.containers import judging
from holdfast.farside.containers.docker import Docker
from holdfast.farside.containers.inside import LOCK

REFUSED = "echo 'Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?' >&2; exit 1"
GONE = "echo 'Error: No such object: holdfast-r' >&2; exit 1"
EXITED = """echo '{"Status": "exited", "OOMKilled": false}'"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "_VANISHING", 0.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a Docker that never answers; one that does has all the time that a busy machine takes."""
    monkeypatch.setattr(judging, "ASK_PATIENCE", 0.3)


def contained(folder: Path, script: str, begun: float) -> Any:
    """A run's container as `judging` sees it, with a `docker` that does what the shell script says."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    inside = folder / "inside"
    inside.mkdir()
    (inside / LOCK).touch()
    (folder / "socket").touch()
    docker = Docker(str(program), {"PATH": os.defpath, "DOCKER_HOST": f"unix://{folder}/socket"})
    wanted = SimpleNamespace(name="holdfast-r", options=(), file="aml_config/box.compute")
    return SimpleNamespace(
        docker=docker, wanted=wanted, inside=str(inside), begun=begun, said=[], hear=list, remove=lambda: None
    )


def judged(found: Any) -> dict[str, Any]:
    ending = judging.finish(found, lambda seconds: None, False).ending
    assert ending is not None
    return ending


@pytest.mark.parametrize(
    ("script", "reason"), [(REFUSED, "docker-stopped"), (GONE, "container-removed"), (EXITED, "container-stopped")]
)
def test_what_docker_says_is_the_reason(tmp_path: Path, script: str, reason: str) -> None:
    assert judged(contained(tmp_path, script, time.time() + 60)) == {"reason": reason, "detail": "", "signal": 9}


@pytest.mark.usefixtures("impatient")
def test_a_docker_that_does_not_answer_has_not_stopped(tmp_path: Path) -> None:
    found = judged(contained(tmp_path, "exec sleep 60", time.time() + 60))
    assert (found["reason"], found["detail"]) == ("killed", "Docker could not be asked: it does not answer.")


@pytest.mark.parametrize(("restores", "reason"), [("true", "container-removed"), ("false", "docker-stopped")])
def test_a_daemon_that_was_restarted_under_a_run_ends_it_unless_it_restores_containers(
    tmp_path: Path, restores: str, reason: str
) -> None:
    script = f'case "$1" in info) echo {restores};; *) {GONE};; esac'
    assert judged(contained(tmp_path, script, time.time() - 60))["reason"] == reason


def test_a_daemon_that_came_after_the_end_has_ended_the_run_whatever_it_restores(tmp_path: Path) -> None:
    script = f'sleep 0.05; rm {tmp_path}/socket; : > {tmp_path}/socket; case "$1" in info) echo true;; *) {GONE};; esac'
    assert judged(contained(tmp_path, script, time.time() - 60))["reason"] == "docker-stopped"


@pytest.mark.usefixtures("impatient")
def test_a_stop_that_the_launcher_heard_is_a_stop_where_docker_does_not_answer(tmp_path: Path) -> None:
    found = contained(tmp_path, "exec sleep 60", time.time() + 60)
    status = {"code": 0, "signal": None, "swept": [], "count": 0, "memory_limit": None, "memory_kills": 0}
    found.said = [{"e": "status", "status": {**status, "owned": True, "outside": 15}}]
    assert judged(found)["reason"] == "container-stopped"


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_child_that_had_no_memory_is_noted_however_the_run_ends(tmp_path: Path, is_stopped: bool) -> None:
    found = contained(tmp_path, EXITED, time.time() + 60)
    found.wanted.options = ("--memory", "64m")
    status = {"code": None, "signal": 15, "swept": [], "count": 0, "memory_limit": 64 << 20, "memory_kills": 1}
    found.said = [{"e": "status", "status": {**status, "owned": True, "outside": None}}]
    (note,) = judging.finish(found, lambda seconds: None, is_stopped).notes
    assert note.startswith("The kernel ended a process of the run because memory ran out.")
    assert note.endswith("The container's limit is 64m: raise `memory` in aml_config/box.compute.")
