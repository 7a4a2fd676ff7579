"""A Docker engine for the tests. A session's workers share `docker`; `private_daemon()` belongs to one test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.docker.benches import (
    ContainerBench,
    container_bench,  # noqa: F401 - a fixture
)
from integration.remote.conftest import boxes, client, kit_folder  # noqa: F401 - fixtures
from integration.runs.conftest import end_what_is_left
from kit.boxes import Box, Boxes
from kit.docker import boxes as docker_boxes
from kit.docker import gpus as docker_gpus
from kit.docker.daemon import Daemon, Settings
from kit.docker.holding import held, shared
from kit.docker.images import template
from kit.docker.pythons import Downloads, downloads
from kit.docker.registry import Registry, registry
from kit.homes import furnish, furnish_account
from kit.nvml import Device, Simulated
from kit.package_server import Index, package_index
from kit.sshd import Client, Options
from kit.suite.missing_parts import require
from kit.wheels import make_wheel

PROGRAMS = ("dockerd", "docker", "containerd", "debootstrap", "docker-registry", "ip", "patchelf")


@pytest.fixture(scope="session")
def docker_template() -> Path:
    """Every image, as a data root that daemons begin with."""
    require(*PROGRAMS, root=True)
    return template()


@pytest.fixture(scope="session")
def shared_docker(docker_template: Path) -> Iterator[Daemon]:
    with shared(docker_template) as daemon:
        yield daemon


@pytest.fixture
def docker(shared_docker: Daemon, monkeypatch: pytest.MonkeyPatch) -> Daemon:
    """The session's daemon, in DOCKER_HOST for everything that the test starts. A test must not stop it."""
    monkeypatch.setenv("DOCKER_HOST", shared_docker.host)
    return shared_docker


@pytest.fixture
def private_daemon(docker_template: Path) -> Iterator[Callable[..., Daemon]]:
    """`private_daemon(Settings(live_restore=True))` is a running daemon with every image, which the test may stop, kill
    or restart; `images=False` gives it no images."""
    with contextlib.ExitStack() as closing:

        def make(settings: Settings = Settings(), images: bool = True) -> Daemon:  # noqa: B008 - it is frozen
            daemon = closing.enter_context(held(settings, docker_template if images else None))
            daemon.start()
            return daemon

        yield make


@pytest.fixture(autouse=True)
def furnished(isolated: Path) -> None:
    """This machine after an earlier command."""
    furnish(isolated / ".holdfast")


@pytest.fixture
def docker_box(boxes: Boxes, client: Client, docker: Daemon) -> Callable[..., Box]:  # noqa: F811
    """`docker_box()` is a box whose account may use the session's daemon, `docker_box(allowed=False)` one whose account
    may not, `docker_box(daemon=private)` one with another daemon; a `fresh` box has never used Holdfast."""

    def make(
        name: str = "gpu1",
        *,
        daemon: Daemon = docker,
        allowed: bool = True,
        fresh: bool = False,
        options: Options = Options(),  # noqa: B008 - it is frozen
    ) -> Box:
        made = docker_boxes.docker_box(boxes, client, daemon, name, allowed, options)
        if not fresh:
            furnish_account(made.account)
        return made

    return make


@pytest.fixture
def docker_gpus_of(docker: Daemon, tmp_path: Path) -> Iterator[Callable[..., Simulated]]:
    """`docker_gpus_of(tmp_path, Device())`: containers with `--gpus` that mount something below that folder, or below
    `box.account.home`, have these GPUs. What it returns is the machine's driver too, for the host's side."""
    with contextlib.ExitStack() as closing:

        def make(below: Path, *devices: Device, daemon: Daemon = docker) -> Simulated:
            made = Simulated(tmp_path / f"gpus{len(list(tmp_path.glob('gpus*')))}", devices)
            closing.enter_context(docker_gpus.offered(daemon, made, below))
            return made

        yield make


@pytest.fixture
def image_registry(tmp_path: Path, docker_template: Path) -> Iterator[Registry]:
    """A registry that asks for a password: `image_registry.push(docker, PLAIN, tmp_path / "login")`."""
    with registry(tmp_path / "registry") as made:
        yield made


@pytest.fixture(scope="session")
def python_downloads(docker_template: Path) -> Iterator[Downloads]:
    """A Python that `uv python install` can install into an image without one: pin `python_downloads.version`."""
    with downloads() as made:
        yield made


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the package `demo`."""
    make_wheel(tmp_path / "wheels", "demo", "1.2")
    return tmp_path / "wheels"


@pytest.fixture
def index(wheels: Path) -> Iterator[Index]:
    """A package index with those wheels, and with those that the test adds."""
    with package_index(wheels) as made:
        yield made


@pytest.fixture
def kind() -> str:
    return "docker"


@pytest.fixture
def make_bench(
    kind: str, tmp_path: Path, holdfast: Callable[..., Any], request: pytest.FixtureRequest
) -> Iterator[Callable[[Daemon], ContainerBench]]:
    made: list[ContainerBench] = []

    def make(daemon: Daemon) -> ContainerBench:
        root = tmp_path / "project"
        root.mkdir()
        if kind == "docker":
            home = Path(os.environ["HOLDFAST_HOME"])
            about = (daemon, kind, os.getuid(), os.getgid(), daemon.environment)
            bench = ContainerBench(root, home, holdfast, *about)
        else:
            box = request.getfixturevalue("docker_box")(daemon=daemon)
            owner = box.account.home.stat()
            about = (daemon, kind, owner.st_uid, owner.st_gid, box.environment)
            bench = ContainerBench(root, box.home, holdfast, *about, address=box.compute.partition("\n")[2])
        made.append(bench)
        bench.target()
        return bench

    yield make
    for bench in made:
        end_what_is_left(bench.home)
        if bench.daemon.pid:
            for name in bench.containers():
                bench.daemon.run("rm", "-f", name, check=False)
