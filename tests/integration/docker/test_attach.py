"""`computetarget attach docker` and `attach remotedocker` with a real engine, here and behind a real SSH server."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.attaching import everything, written
from kit.boxes import Box, Boxes
from kit.docker.attaching import attach_here, attach_there, keys_of
from kit.docker.daemon import Daemon, Settings
from kit.docker.gpus import offered
from kit.docker.images import FOREIGN, MUSL, NO_SHELL, PLAIN, PYTHON
from kit.docker.registry import Registry
from kit.nvml import Device, Simulated
from kit.sshd import Client, Options

Run = Callable[..., Any]
Make = Callable[..., Any]
WRITES = "A container on this machine writes to Holdfast's folder there, and its files are yours."


# ---- on this machine ----


def test_docker_here_is_tried_and_its_target_runs_a_script_unedited(
    holdfast: Run, docker: Daemon, tmp_path: Path, isolated: Path
) -> None:
    result = attach_here(holdfast)
    assert result.code == 0, result.err
    assert result.out == "aml_config/here.compute\naml_config/here.runconfig\n"
    assert WRITES in result.err
    assert f"images in {docker.root}" in result.err
    assert keys_of(tmp_path, "here") == {
        "type": "docker",
        "baseDockerImage": PYTHON,
        "sharedVolumes": "true",
        "userManagedEnvironment": "false",
    }
    assert "Framework: Python\n" in (tmp_path / "aml_config" / "here.runconfig").read_text()
    assert not (isolated / ".holdfast" / "proofs").exists()
    assert docker.containers("--filter", f"label=holdfast.home={isolated}/.holdfast") == []

    (tmp_path / "t.py").write_text("import os; print(os.path.exists('/.dockerenv'), os.getuid())")
    ran = holdfast("submit", "-c", "here", "t.py", timeout=300)
    assert ran.code == 0, ran.err
    assert ran.out.endswith("True 0\n")


def test_a_second_attach_with_another_image_changes_that_line_alone(
    holdfast: Run, docker: Daemon, tmp_path: Path
) -> None:
    assert attach_here(holdfast).code == 0
    file = tmp_path / "aml_config" / "here.compute"
    file.write_text(f"# ours\n{file.read_text()}memory: 1g\n")
    before = file.read_text()
    again = attach_here(holdfast, image=PLAIN)
    assert again.code == 0, again.err
    assert again.out == "aml_config/here.compute\n"
    assert file.read_text() == before.replace(PYTHON, PLAIN)
    same = holdfast("computetarget", "attach", "docker", "--name", "here")
    assert (same.code, same.out) == (0, "")
    assert file.read_text() == before.replace(PYTHON, PLAIN), "the file's own image, where none is named"


@pytest.mark.parametrize(
    "words",
    [
        ["--type", "localdocker"],
        pytest.param(["--type", "docker"], marks=pytest.mark.soak),
        pytest.param(["localdocker"], marks=pytest.mark.soak),
    ],
)
def test_older_spellings_attach_too(holdfast: Run, docker: Daemon, tmp_path: Path, words: list[str]) -> None:
    result = holdfast("computetarget", "attach", *words, "-n", "here", "--image", PYTHON)
    assert result.code == 0, result.err
    assert keys_of(tmp_path, "here")["type"] == "docker"


def test_the_usual_image_is_taken_where_none_is_named(holdfast: Run, private_daemon: Make, tmp_path: Path) -> None:
    daemon = private_daemon()
    daemon.run("tag", PYTHON, "ubuntu:24.04")
    result = holdfast("computetarget", "attach", "docker", "--name", "here", env=daemon.environment)
    assert result.code == 0, result.err
    assert keys_of(tmp_path, "here")["baseDockerImage"] == "ubuntu:24.04"


@pytest.mark.parametrize("image", [PLAIN, MUSL])
def test_no_python_is_asked_of_an_image(holdfast: Run, docker: Daemon, image: str) -> None:
    result = attach_here(holdfast, image=image)
    assert result.code == 0, result.err


def test_gpus_that_docker_gives_are_written(
    holdfast: Run, docker: Daemon, docker_gpus_of: Make, tmp_path: Path, isolated: Path
) -> None:
    gpus = docker_gpus_of(isolated, Device(), Device())
    result = attach_here(holdfast, env=gpus.environment)
    assert result.code == 0, result.err
    assert "Docker gives containers the GPUs, by NVIDIA's hook (`--gpus`)." in result.err
    assert keys_of(tmp_path, "here")["nvidiaDocker"] == "true"


def test_gpus_that_docker_cannot_give_are_reported_with_the_command_that_fixes_it(
    holdfast: Run, private_daemon: Make, tmp_path: Path
) -> None:
    daemon = private_daemon(Settings(hook=False))
    gpus = Simulated(tmp_path / "gpus", [Device()])
    result = attach_here(holdfast, env={**daemon.environment, **gpus.environment})
    assert result.code == 0, result.err
    assert "nvidiaDocker" not in keys_of(tmp_path, "here")
    assert "sudo nvidia-ctk runtime configure --runtime=docker" in result.err
    assert "nvidiaDocker: true" in result.err


def test_files_are_the_users_where_the_engine_maps_users_to_others(
    holdfast: Run, docker: Daemon, private_daemon: Make, boxes: Boxes, tmp_path: Path
) -> None:
    saved = tmp_path / "image.tar"
    docker.run("save", "-o", str(saved), MUSL)
    daemon = private_daemon(Settings(extra=(f"--userns-remap={boxes.account().name}",)), images=False)
    daemon.run("load", "-i", str(saved))
    result = attach_here(holdfast, image=MUSL, env=daemon.environment)
    assert result.code == 0, result.err
    assert "users remapped" in result.err
    assert WRITES in result.err


def test_an_image_of_a_registry_is_fetched_with_the_users_own_login(
    holdfast: Run, docker: Daemon, private_daemon: Make, image_registry: Registry, tmp_path: Path
) -> None:
    name = image_registry.push(docker, MUSL, tmp_path / "login")
    empty = private_daemon(images=False)

    refused = attach_here(holdfast, image=name, env=empty.environment)
    assert refused.code == 0, refused.err
    assert f"`{name}`" in refused.err
    assert f"docker login {image_registry.address}" in refused.err
    assert written(tmp_path) == ["here.compute", "here.runconfig"], "all but the image is there"
    checked = holdfast("computetarget", "check", "here", env=empty.environment)
    assert ", if it can fetch the image." in checked.err

    assert holdfast("computetarget", "detach", "here", env=empty.environment).code == 0
    environment = {**empty.environment, "DOCKER_CONFIG": str(tmp_path / "login")}
    shown = _in_a_terminal(["docker", "-n", "here", "--image", name], tmp_path, environment)
    assert f"pulling {name}" in shown, "what takes long is told"
    assert f"trying a container of {name}" in shown
    assert f"{name}:latest" in empty.images()
    assert keys_of(tmp_path, "here")["baseDockerImage"] == name


def test_an_image_that_no_registry_has_is_refused_and_nothing_is_written(
    holdfast: Run, docker: Daemon, image_registry: Registry, tmp_path: Path, isolated: Path
) -> None:
    image_registry.login(docker, tmp_path / "login")
    name = image_registry.name_of("holdfast/none")
    result = attach_here(holdfast, image=name, env={"DOCKER_CONFIG": str(tmp_path / "login")})
    assert result.code == 245
    assert f"no image `{name}`" in result.err
    assert written(tmp_path) == []


@pytest.mark.parametrize(("image", "words"), [(NO_SHELL, "has no /bin/sh"), (FOREIGN, "is for aarch64")])
def test_an_image_that_cannot_run_here_is_refused(
    holdfast: Run, docker: Daemon, tmp_path: Path, image: str, words: str
) -> None:
    result = attach_here(holdfast, image=image)
    assert result.code == 245
    assert words in result.err
    assert "baseDockerImage" in result.err
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://gpu9:2375", "attach remotedocker --name NAME --address gpu9"),
        ("ssh://me@gpu9", "attach remotedocker --name NAME --address gpu9"),
        ("unix:///nowhere/docker.sock", "sudo systemctl start docker"),
    ],
)
def test_a_daemon_elsewhere_and_one_that_does_not_run_are_refused(
    holdfast: Run, docker: Daemon, tmp_path: Path, address: str, words: str
) -> None:
    result = attach_here(holdfast, env={"DOCKER_HOST": address})
    assert result.code == 245
    assert words in result.err
    assert written(tmp_path) == []


def test_a_folder_that_the_daemon_does_not_see_is_refused_naming_another(
    docker: Daemon, tmp_path: Path, needs: Callable[..., None]
) -> None:
    """A disk that only some processes see, like an encrypted home, or most folders for Docker from a snap."""
    needs("unshare")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    attach = [sys.executable, "-m", "holdfast", "computetarget", "attach", "docker", "-n", "here", "--image", PYTHON]
    mounted = 'mount -t tmpfs none "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", mounted, "sh", str(hidden), *attach],
        cwd=tmp_path,
        env={**os.environ, "HOLDFAST_HOME": str(hidden / "holdfast")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 245, done.stderr
    assert f"`{hidden}" in done.stderr
    assert "local disk" in done.stderr
    assert written(tmp_path) == []


def test_a_name_of_another_target_is_refused_before_anything_is_tried(holdfast: Run, docker: Daemon) -> None:
    assert holdfast("computetarget", "attach", "local", "--name", "here").code == 0
    again = attach_here(holdfast, env={"DOCKER_HOST": "tcp://nowhere:1"})
    assert again.code == 242
    assert "is there already" in again.err


# ---- on a machine over SSH ----


def test_a_box_is_attached_and_runs_a_script_in_a_container_as_its_user(
    holdfast: Run, docker_box: Make, docker: Daemon, tmp_path: Path
) -> None:
    gpu1: Box = docker_box()
    result = attach_there(holdfast, gpu1)
    assert result.code == 0, result.err
    assert result.out == "aml_config/gpu1.compute\naml_config/gpu1.runconfig\n"
    assert "A process over there outlives the connection." in result.err
    assert "writes to Holdfast's folder there, and its files are yours." in result.err
    assert keys_of(tmp_path, "gpu1") == {
        "type": "remotedocker",
        "address": "gpu1",
        "baseDockerImage": PYTHON,
        "sharedVolumes": "true",
        "userManagedEnvironment": "false",
    }
    assert not (gpu1.home / "proofs").exists()
    (tmp_path / "t.py").write_text(
        "import os; open('outputs/x', 'w').write('mine'); print(os.path.exists('/.dockerenv'), os.getuid())"
    )
    ran = holdfast("submit", "-c", "gpu1", "t.py", env=gpu1.environment, timeout=300)
    assert ran.code == 0, ran.err
    assert ran.out.endswith(f"True {gpu1.account.uid}\n")


def test_the_older_spelling_of_a_box_attaches_too(holdfast: Run, docker_box: Make, tmp_path: Path) -> None:
    gpu1: Box = docker_box()
    words = ["--name", "gpu1", "--type", "remotedocker", "--address", "gpu1", "--image", PYTHON]
    result = holdfast("computetarget", "attach", *words, env=gpu1.environment)
    assert result.code == 0, result.err
    assert keys_of(tmp_path, "gpu1")["type"] == "remotedocker"


def test_a_user_without_access_gets_the_command_that_fixes_it_and_nothing_is_left(
    holdfast: Run, docker_box: Make, tmp_path: Path
) -> None:
    gpu1: Box = docker_box(allowed=False, fresh=True)
    before = everything(gpu1.account.home)
    refused = attach_there(holdfast, gpu1)
    assert refused.code == 245
    assert f"sudo usermod -aG docker {gpu1.account.name}" in refused.err
    assert "log in again" in refused.err
    assert (written(tmp_path), (tmp_path / ".holdfast").exists()) == ([], False)
    assert everything(gpu1.account.home) == before

    gpu1.account.join("docker")
    result = attach_there(holdfast, gpu1)
    assert result.code == 0, result.err


def test_an_attach_that_fails_at_the_image_leaves_nothing_on_the_machine(
    holdfast: Run, docker_box: Make, tmp_path: Path
) -> None:
    gpu1: Box = docker_box(fresh=True)
    before = everything(gpu1.account.home)
    assert attach_there(holdfast, gpu1, image=NO_SHELL).code == 245
    assert written(tmp_path) == []
    assert everything(gpu1.account.home) == before


def test_gpus_of_a_box_are_written_and_a_later_look_finds_them(
    holdfast: Run, docker_box: Make, docker: Daemon, client: Client, tmp_path: Path
) -> None:
    premises = client.folder.parent
    gpus = Simulated(premises / "gpus", [Device()])
    with offered(docker, gpus, premises):
        gpu1: Box = docker_box(options=Options(environment=gpus.environment))
        result = attach_there(holdfast, gpu1)
        assert result.code == 0, result.err
        assert keys_of(tmp_path, "gpu1")["nvidiaDocker"] == "true"
        assert holdfast("computetarget", "check", "gpu1", env=gpu1.environment).code == 0


def test_a_second_laptop_attaches_the_same_box_and_changes_nothing_that_was_written(
    holdfast: Run, docker_box: Make, tmp_path: Path
) -> None:
    gpu1: Box = docker_box()
    assert attach_there(holdfast, gpu1).code == 0
    file = tmp_path / "aml_config" / "gpu1.compute"
    file.write_text(file.read_text() + "shmSize: 2g\n")
    given = ["--name", "gpu1", "--address", "gpu1"]
    again = holdfast("computetarget", "attach", "remotedocker", *given, env=gpu1.environment)
    assert again.code == 0, again.err
    assert keys_of(tmp_path, "gpu1")["shmSize"] == "2g"
    assert keys_of(tmp_path, "gpu1")["baseDockerImage"] == PYTHON


def _in_a_terminal(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Everything that a person sees during attach, including overwritten lines."""
    mine, theirs = pty.openpty()
    argv = [sys.executable, "-m", "holdfast", "computetarget", "attach", *words]
    with subprocess.Popen(
        argv, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the other end is closed when it ends
            while data := os.read(mine, 65536):
                seen += data
    os.close(mine)
    assert process.returncode == 0, seen
    return seen.decode()
