"""The guide for GPU boxes does what it shows, with a real server and a real engine behind the name `my_dsvm`. Its image
has no Python, like the one that attach writes: uv installs one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.console_examples import collect, complaint, page_environment, run
from kit.boxes import Box
from kit.docker.daemon import Daemon
from kit.docker.gpus import offered
from kit.docker.images import PLAIN
from kit.docker.pythons import Downloads
from kit.nvml import Device, Simulated
from kit.sshd import Client, Options
from kit.waiting import wait_for

pytestmark = pytest.mark.time_limit(300, "builds an environment in an image")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "gpu-box.md"


def test_the_commands_of_the_page_do_what_it_shows(
    docker_box: Callable[..., Box],
    private_daemon: Callable[..., Daemon],
    client: Client,
    python_downloads: Downloads,
    tmp_path: Path,
) -> None:
    daemon = private_daemon()
    daemon.run("tag", PLAIN, "ubuntu:24.04")
    premises = client.folder.parent
    gpus = Simulated(premises / "gpus", [Device()])
    examples = collect(PAGE.read_text(encoding="utf-8"))
    folder = tmp_path / "reader"
    folder.mkdir()
    with offered(daemon, gpus, premises):
        over_there = Options(environment={**gpus.environment, **python_downloads.environment})
        my_dsvm = docker_box("my_dsvm", daemon=daemon, options=over_there)
        environment = {**page_environment(Path(sys.executable)), **my_dsvm.environment}

        answers = run(examples, folder, environment, timeout=300)

    complaints = [complaint(example, answer) for example, answer in zip(examples, answers, strict=False)]
    assert [each for each in complaints if each] == []
    assert len(answers) == len(examples)
    wait_for(lambda: daemon.containers() == [])
