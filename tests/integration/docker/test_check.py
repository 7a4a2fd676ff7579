"""`computetarget check`, `detach` and `experiment clean` of targets with containers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.run.liveness import is_alive
from kit.boxes import Box
from kit.docker.attaching import attach_here, attach_there, leave_container, write_here, write_there
from kit.docker.daemon import Daemon
from kit.docker.images import PLAIN, PYTHON
from kit.nvml import Device, Simulated
from kit.waiting import wait_for

Run = Callable[..., Any]
Make = Callable[..., Any]


@pytest.fixture
def here(docker: Daemon, tmp_path: Path) -> Daemon:
    """This machine, as a target."""
    write_here(tmp_path)
    return docker


@pytest.fixture
def gpu1(docker_box: Make, tmp_path: Path) -> Box:
    made: Box = docker_box()
    write_there(tmp_path, made)
    return made


def is_over(home: Path) -> bool:
    """Whether the container of its only run is removed, and the process that did it is gone."""
    (run,) = home.glob("runs/*/*")
    return not is_alive(str(run))


def test_a_check_shows_docker_and_says_that_runs_will_work(holdfast: Run, here: Daemon) -> None:
    result = holdfast("computetarget", "check", "here", "-o", "table")
    assert result.code == 0, result.err
    assert f"images in {here.root}" in result.out
    assert "Runs will work on `here`." in result.err
    data = json.loads(holdfast("computetarget", "check", "here", "-o", "json").out)
    assert data["engine"]["root"] == str(here.root)
    assert data["engine"]["leftovers"] == []


def test_this_machine_is_shown_with_its_docker(holdfast: Run, docker: Daemon) -> None:
    result = holdfast("check", "-o", "table")
    assert result.code == 0, result.err
    assert f"images in {docker.root}" in result.out


def test_a_check_of_a_box_shows_the_same(holdfast: Run, gpu1: Box, docker: Daemon) -> None:
    result = holdfast("computetarget", "check", "gpu1", "-o", "table", env=gpu1.environment)
    assert result.code == 0, result.err
    assert f"images in {docker.root}" in result.out


def test_a_user_who_lost_access_gets_the_fix_beside_everything_else(
    holdfast: Run, docker_box: Make, tmp_path: Path
) -> None:
    gpu1: Box = docker_box(allowed=False)
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "gpu1.compute").write_text("type: remotedocker\naddress: gpu1\n")
    result = holdfast("computetarget", "check", "gpu1", "-o", "table", env=gpu1.environment)
    assert result.code == 245
    assert "Memory" in result.out
    assert f"sudo usermod -aG docker {gpu1.account.name}" in result.err


def test_a_target_that_wants_gpus_of_a_machine_without_is_stopped_with_file_and_key(
    holdfast: Run, here: Daemon, tmp_path: Path
) -> None:
    file = tmp_path / "aml_config" / "here.compute"
    file.write_text(file.read_text() + "nvidiaDocker: true\n")
    result = holdfast("computetarget", "check", "here")
    assert result.code == 245
    said = "`nvidiaDocker: true` in aml_config/here.compute asks for GPUs"
    remedy = "Write `nvidiaDocker: false` there, or have the driver installed."
    assert said in result.err
    assert remedy in result.err
    assert said not in result.out, "it is told once"
    (tmp_path / "t.py").touch()
    submitted = holdfast("submit", "-c", "here", "t.py")
    assert said in submitted.err, "the same for every command"
    assert remedy in submitted.err


@pytest.mark.parametrize(
    ("lines", "image", "said"),
    [
        (
            "volumes:\n- /nowhere/at/all:/data\n",
            PYTHON,
            "`volumes[0]` in aml_config/here.compute names `/nowhere/at/all`",
        ),
        ("userManagedEnvironment: true\n", PLAIN, f"The image `{PLAIN}` has no Python `python3`"),
        (
            "userManagedEnvironment: true\npythonLocation: /opt/py\n",
            PYTHON,
            f"The image `{PYTHON}` has no Python `/opt/py`",
        ),
        ("network: hots\n", PYTHON, "Correct `network` in aml_config/here.compute."),
        ("cpus: 999\n", PYTHON, "Correct `cpus` in aml_config/here.compute."),
    ],
)
def test_what_a_run_of_the_target_would_be_refused_for_is_found_by_a_check(
    holdfast: Run, here: Daemon, isolated: Path, tmp_path: Path, lines: str, image: str, said: str
) -> None:
    file = tmp_path / "aml_config" / "here.compute"
    file.write_text(f"type: docker\nbaseDockerImage: {image}\n{lines}")
    result = holdfast("computetarget", "check", "here")
    assert result.code == 245
    assert said in result.err
    assert "Runs will work" not in result.err
    assert f"images in {here.root}" in result.out
    assert here.containers("--filter", f"label=holdfast.home={isolated}/.holdfast") == []


def test_a_target_with_all_that_it_may_say_is_tried_with_it(holdfast: Run, here: Daemon, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    words = ["memory: 256m", "cpus: 1", "shmSize: 64m", "network: bridge", "userManagedEnvironment: true"]
    volumes = ["volumes:", f"- {tmp_path}/data:/data", "dockerArguments:", "- --ulimit=nofile=1024"]
    lines = ["type: docker", f"baseDockerImage: {PYTHON}", *words, *volumes]
    (tmp_path / "aml_config" / "here.compute").write_text("".join(f"{line}\n" for line in lines))
    result = holdfast("computetarget", "check", "here")
    assert result.code == 0, result.err
    assert "`here`." in result.err, "without reserve"


def test_a_check_is_a_page_in_a_pipe_too_and_data_only_where_it_is_asked_for(holdfast: Run, here: Daemon) -> None:
    assert holdfast("computetarget", "check", "here").out.startswith("Machine ")
    assert holdfast("computetarget", "check", "here", "--query", "engine.kind").out == '"docker"\n'


def test_gpus_that_the_target_does_not_ask_for_are_told_of(
    holdfast: Run, here: Daemon, docker_gpus_of: Make, isolated: Path
) -> None:
    gpus: Simulated = docker_gpus_of(isolated, Device())
    result = holdfast("computetarget", "check", "here", "-o", "table", env=gpus.environment)
    assert result.code == 0, result.err
    assert "Write `nvidiaDocker: true` into aml_config/here.compute" in result.out


def test_an_image_that_is_not_there_is_not_fetched_by_a_check(holdfast: Run, here: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "aml_config" / "here.compute"
    file.write_text(file.read_text().replace("holdfast/python", "127.0.0.1:1/none"))
    result = holdfast("computetarget", "check", "here", "-o", "table")
    assert result.code == 0, result.err
    assert "The image `127.0.0.1:1/none` is not on the machine." in result.out
    assert "The first run fetches it." in result.out
    assert "`here`, if" in result.err


def test_containers_that_are_left_are_found_and_cleaned(
    holdfast: Run, here: Daemon, isolated: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text("print(1)")
    assert holdfast("submit", "-c", "here", "t.py", timeout=300).code == 0
    wait_for(lambda: is_over(isolated / ".holdfast"))
    name = leave_container(here, isolated / ".holdfast", f"lost_{tmp_path.name}")
    try:
        found = holdfast("computetarget", "check", "here", "-o", "table")
        assert found.code == 0, found.err
        assert f"left there: {name}." in found.out
        assert f"docker rm -f {name}" in found.out
        cleaned = holdfast("experiment", "clean", "--all", "-t", "here")
        assert cleaned.code == 0, cleaned.err
        assert f"removed container {name}" in cleaned.err
        assert name not in here.containers()
    finally:
        here.run("rm", "-f", name, check=False)


def test_a_purge_of_this_machine_takes_containers_and_folder_along(
    holdfast: Run, docker: Daemon, isolated: Path, tmp_path: Path
) -> None:
    assert attach_here(holdfast).code == 0
    name = leave_container(docker, isolated / ".holdfast", f"lost_{tmp_path.name}")
    try:
        result = holdfast("computetarget", "detach", "here", "--purge", "--yes")
        assert result.code == 0, result.err
        assert name not in docker.containers()
        assert not (isolated / ".holdfast").exists()
    finally:
        docker.run("rm", "-f", name, check=False)


def test_a_purge_of_a_box_takes_its_containers_along_and_no_others(
    holdfast: Run, docker_box: Make, docker: Daemon, tmp_path: Path
) -> None:
    gpu1: Box = docker_box()
    assert attach_there(holdfast, gpu1).code == 0
    name = leave_container(docker, gpu1.home, f"lost_{gpu1.account.name}")
    other = leave_container(docker, tmp_path, f"others_{gpu1.account.name}")
    try:
        words = ["computetarget", "detach", "gpu1", "--purge", "--yes"]
        result = holdfast(*words, env=gpu1.environment)
        assert result.code == 0, result.err
        assert name not in docker.containers()
        assert other in docker.containers()
        assert not gpu1.home.exists()
    finally:
        docker.run("rm", "-f", name, other, check=False)


def test_a_folder_of_the_users_own_choice_is_holdfasts_from_the_first_attach_on(
    holdfast: Run, docker: Daemon, tmp_path: Path
) -> None:
    home = tmp_path / "disk" / "holdfast"
    chosen = {"HOLDFAST_HOME": str(home)}
    result = attach_here(holdfast, env=chosen)
    assert result.code == 0, result.err
    (tmp_path / "t.py").write_text("print(1)")
    assert holdfast("submit", "-c", "here", "t.py", timeout=300, env=chosen).code == 0
    wait_for(lambda: is_over(home))
    cleaned = holdfast("experiment", "clean", "--all", "-t", "here", env=chosen)
    assert cleaned.code == 0, cleaned.err
    assert "removed " in cleaned.err
    purged = holdfast("computetarget", "detach", "here", "--purge", "--yes", env=chosen)
    assert purged.code == 0, purged.err
    assert [each.name for each in home.iterdir()] == ["projects"]  # which projects are the account's
