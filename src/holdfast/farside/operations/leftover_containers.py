"""Containers of this home whose run is over: what a supervisor that was killed could not remove any more."""

import os
from typing import Any, Dict, Iterator, List

from holdfast.farside.containers.container_age import LABEL, age
from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.docker_errors import explain
from holdfast.farside.containers.docker_options import HOME_LABEL, PROJECT_LABEL, RUN_LABEL, SHELL_LABEL
from holdfast.farside.run.liveness import is_alive
from holdfast.farside.system import foreign
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused

PATIENCE = 60.0
YOUNG = 600.0
"""Seconds in which a container that is no run's may be at work."""
_LIVING = ("running", "paused", "restarting")


def find(home: Home) -> List[Dict[str, str]]:
    """`name`, `run`, `project`, `state`, `image` of each. Docker is not asked where no run here ever had one."""
    if not home.had_containers():
        return []
    docker = DockerClient()
    return list(_over(home, docker, _listed(home, docker)))


def remove(home: Home) -> List[str]:
    """Names of those that are gone now. A Docker that is not there has none."""
    try:
        found = [each["name"] for each in find(home)]
    except Refused:
        return []
    docker = DockerClient()
    return [name for name in found if docker.call(["rm", "-f", "-v", name], PATIENCE).is_good]


def _listed(home: Home, docker: DockerClient) -> List[Dict[str, Any]]:
    """Podman and Docker agree about `inspect` more than about lists."""
    names = docker.call(["ps", "-a", "-q", "--no-trunc", "--filter", "label=%s=%s" % (HOME_LABEL, home.path)], PATIENCE)
    if not names.is_good:
        raise explain(names)
    if not names.output.split():
        return []
    answer = docker.call(["inspect"] + names.output.split(), PATIENCE)  # fails for one that has gone meanwhile
    found = foreign.parsed(answer.output)
    if not isinstance(found, list):
        raise explain(answer)
    return [each for each in found if isinstance(each, dict)]


def _over(home: Home, docker: DockerClient, rows: List[Dict[str, Any]]) -> Iterator[Dict[str, str]]:
    for row in rows:
        config = foreign.mapping(row.get("Config"))
        labels = foreign.mapping(config.get("Labels"))
        run, project = str(labels.get(RUN_LABEL, "")), str(labels.get(PROJECT_LABEL, ""))
        state = str(foreign.mapping(row.get("State")).get("Status", ""))
        if SHELL_LABEL in labels and state in _LIVING:
            continue  # a person is in it, for as long as that may be
        is_young = age(str(labels.get(LABEL, "")), str(row.get("Created", ""))) < YOUNG
        if _is_at_work(home, project, run) if run and project else is_young:
            continue
        yield {
            "name": str(row.get("Name", "")).lstrip("/"),
            "run": run,
            "project": project,
            "state": state,
            "image": str(config.get("Image", "")),
        }


def _is_at_work(home: Home, project: str, run: str) -> bool:
    try:
        folder = home.run(project, run)
    except Refused:
        return True  # not one of ours, whatever it says
    return os.path.isdir(folder) and is_alive(folder)
