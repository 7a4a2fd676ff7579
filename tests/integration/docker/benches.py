"""A project whose target runs in containers, on this machine or behind a real SSH server: one bench for both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.runs.conftest import Bench, end_what_is_left
from kit.boxes import Box
from kit.docker.daemon import Daemon
from kit.docker.images import PYTHON
from kit.homes import furnish

KINDS = ("docker", "remotedocker")
NAME = "box"


@dataclass(frozen=True)
class ContainerBench(Bench):
    """The target `box` of one kind. `uid` is the script's user; `variables` are for the command line."""

    daemon: Daemon
    kind: str
    uid: int
    gid: int
    variables: Mapping[str, str]
    address: str = ""

    def target(self, *lines: str, image: str = PYTHON, name: str = NAME) -> None:
        """Write the target: the image's own Python is used unless a line says otherwise."""
        managed = [] if any("userManagedEnvironment" in each for each in lines) else ["userManagedEnvironment: true"]
        text = [f"type: {self.kind}", *self.address.splitlines(), f"baseDockerImage: {image}", *managed, *lines]
        self.write(f"aml_config/{name}.compute", "".join(f"{line}\n" for line in text))
        self.write(f"aml_config/{name}.runconfig", f"Target: {name}\nFramework: Python\n")

    def run(self, *arguments: str, **options: Any) -> Any:
        environment = {**self.variables, **options.pop("env", {})}
        return self.command(*arguments, cwd=self.root, env=environment, **{"timeout": 180, **options})

    def submit(self, *arguments: str, **options: Any) -> Any:
        return super().submit("-c", NAME, *arguments, **options)

    def start(self, *arguments: str, **options: Any) -> str:
        return super().start("-c", NAME, *arguments, **options)

    def containers(self) -> list[str]:
        """Of this bench's runs, including ended ones."""
        return self.daemon.containers("--filter", f"label=holdfast.home={self.home}")

    def container(self, run_id: str) -> str:
        """The name of the run's container."""
        return f"holdfast-{run_id}-{self.far(run_id).parent.name[:6]}"

    def ids(self) -> list[str]:
        folder = self.root / ".holdfast" / "runs"
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def kind() -> str:
    """By default, the product with the most parts: `docker` is a subset of it."""
    return "remotedocker"


@pytest.fixture
def container_bench(
    kind: str, tmp_path: Path, docker: Daemon, holdfast: Callable[..., Any], request: pytest.FixtureRequest
) -> Iterator[ContainerBench]:
    root = tmp_path / "project"
    root.mkdir()
    if kind == "docker":
        home = furnish(Path(os.environ["HOLDFAST_HOME"]))
        made = ContainerBench(root, home, holdfast, docker, kind, os.getuid(), os.getgid(), docker.environment)
    else:
        box: Box = request.getfixturevalue("docker_box")()
        owner = box.account.home.stat()
        about = (docker, kind, owner.st_uid, owner.st_gid, box.environment)
        made = ContainerBench(root, box.home, holdfast, *about, address=box.compute.partition("\n")[2])
    made.target()
    yield made
    end_what_is_left(made.home)
    for name in made.containers():
        docker.run("rm", "-f", name, check=False)
