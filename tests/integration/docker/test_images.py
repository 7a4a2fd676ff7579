"""Images: fetched with the host's own login, with progress, and refused before anything runs if they do not fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.docker.benches import ContainerBench, container_bench  # noqa: F401 - a fixture
from kit.disks import fill, small_disk
from kit.docker.daemon import Daemon, Settings
from kit.docker.images import FOREIGN, MUSL, NO_SHELL, PLAIN, PYTHON
from kit.docker.registry import Registry
from kit.waiting import wait_for

FILE = "aml_config/box.compute"


@pytest.fixture
def kind() -> str:
    return "docker"


@pytest.fixture
def bench(container_bench: ContainerBench) -> ContainerBench:  # noqa: F811
    container_bench.write("t.py", "print('ran')\n")
    return container_bench


@pytest.fixture
def pushed(request: pytest.FixtureRequest, image_registry: Registry, docker: Daemon, tmp_path: Path) -> Iterator[str]:
    """An image that only the registry has, not the daemon: by default the smallest one."""
    name = image_registry.push(docker, getattr(request, "param", MUSL), tmp_path / "pusher")
    yield name
    docker.run("rmi", "--no-prune", name, check=False)


def ending(bench: ContainerBench) -> dict[str, str]:
    found = bench.event(bench.ids()[-1], "ended")
    return {name: str(found[name]) for name in ("reason", "detail")}


@pytest.mark.parametrize("pushed", [PYTHON], indirect=True)
def test_a_missing_image_is_pulled_with_the_hosts_own_login(
    bench: ContainerBench, pushed: str, image_registry: Registry, docker: Daemon
) -> None:
    image_registry.login(docker, Path(os.environ["HOME"]) / ".docker")
    bench.target(image=pushed)

    done = bench.submit("t.py")

    assert (done.code, done.out) == (0, "ran\n"), done.err
    phases = [event["text"] for event in bench.journal(bench.ids()[-1]) if event["e"] == "phase"]
    assert f"pulling {pushed}" in phases
    assert "Fetching the image" in done.err
    log = (bench.far(bench.ids()[-1]) / "control_log").read_text()
    assert f"$ docker pull {pushed}\n" in log
    assert "Status: Downloaded newer image" in log


def test_an_image_that_wants_a_login_says_how_to_log_in(
    bench: ContainerBench, pushed: str, image_registry: Registry
) -> None:
    bench.target(image=pushed)

    assert bench.submit("t.py").code != 0

    found = ending(bench)
    assert found["reason"] == "container"
    assert f"The registry wants a login for the image `{pushed}`" in found["detail"]
    assert f"docker login {image_registry.address}" in found["detail"]
    assert f"named in {FILE} under `baseDockerImage`" in found["detail"]


def test_a_tag_that_the_registry_has_not_is_said_so(
    bench: ContainerBench, pushed: str, image_registry: Registry, docker: Daemon
) -> None:
    image_registry.login(docker, Path(os.environ["HOME"]) / ".docker")
    bench.target(image=pushed + ":99")

    assert bench.submit("t.py").code != 0

    assert f"The registry has no image `{pushed}:99`" in ending(bench)["detail"]


def test_a_registry_that_does_not_answer_is_said_so(bench: ContainerBench) -> None:
    bench.target(image="127.0.0.1:1/nobody/here:1")

    done = bench.submit("t.py")

    assert done.code != 0
    assert "The registry of the image `127.0.0.1:1/nobody/here:1` cannot be reached" in done.err


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (FOREIGN, "is for aarch64"),
        (NO_SHELL, "has no /bin/sh"),
    ],
)
def test_an_image_that_does_not_fit_is_refused_with_file_key_and_remedy(
    bench: ContainerBench, image: str, expected: str
) -> None:
    bench.target(image=image)

    done = bench.submit("t.py")

    assert done.code != 0
    found = ending(bench)["detail"]
    assert f"The image `{image}` {expected}" in found
    assert f"named in {FILE} under `baseDockerImage`. Choose" in found
    wait_for(lambda: bench.containers() == [])


def test_the_default_image_is_called_so_and_what_is_wrong_with_it_is_no_matter_of_the_environment(
    bench: ContainerBench, private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon()
    daemon.run("tag", NO_SHELL, "ubuntu:24.04")
    bench.write(FILE, "type: docker\nuserManagedEnvironment: true\n")

    done = bench.submit("t.py", env=daemon.environment)

    assert done.code != 0
    found = ending(bench)
    assert found["reason"] == "container"
    assert "The image `ubuntu:24.04` has no /bin/sh." in found["detail"]
    assert f"{FILE} has no `baseDockerImage`." in found["detail"]


@pytest.mark.parametrize("image", [PLAIN, MUSL])
def test_an_image_without_python_cannot_be_used_as_it_is(bench: ContainerBench, image: str) -> None:
    bench.target(image=image)

    done = bench.submit("t.py")

    assert done.code != 0
    assert image in done.err
    assert "userManagedEnvironment" in done.err


def test_a_full_disk_of_docker_is_told_while_pulling(
    container_bench: ContainerBench,  # noqa: F811
    private_daemon: Callable[..., Daemon],
    pushed: str,
    image_registry: Registry,
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 40):
        daemon = private_daemon(Settings(root=str(tmp_path / "disk" / "root")), images=False)
        image_registry.login(daemon, Path(os.environ["HOME"]) / ".docker")
        fill(tmp_path / "disk")
        container_bench.write("t.py", "print('ran')\n")
        container_bench.target(image=pushed)

        done = container_bench.submit("t.py", env=daemon.environment)

        assert done.code != 0
        daemon.close()
    found = ending(container_bench)
    assert found["reason"] == "storage"
    assert f"`{pushed}`" in found["detail"]
    assert "docker image prune" in found["detail"]


def test_canceling_while_an_image_is_pulled_ends_the_run(bench: ContainerBench, tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the question and never answers
        bench.target(image=f"127.0.0.1:{silent.getsockname()[1]}/slow:1")
        run_id = bench.start("t.py")
        connection, _ = silent.accept()

        assert bench.run("cancel", "-r", run_id, "--grace", "1s").code == 0
        connection.close()

    assert bench.event(run_id, "ended")["reason"] == "canceled"
