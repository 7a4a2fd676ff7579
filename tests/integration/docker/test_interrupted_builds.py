"""Builds of environments for containers that are canceled, killed or disturbed: each is reported correctly, and no
container and no partial environment is left."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.docker.benches import ContainerBench, container_bench  # noqa: F401 - a fixture
from integration.docker.environment_runs import environment_bench, wants  # noqa: F401 - a fixture
from integration.runs.conftest import is_gone
from kit.docker.daemon import Daemon
from kit.package_server import Index, package_index
from kit.waiting import wait_for

LONG = 180
"""Seconds, enough for a busy machine."""


class Held:
    """Holds the index's answers back until it is released."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.go.wait(LONG)


@pytest.fixture
def held(wheels: Path) -> Iterator[tuple[Held, Index]]:
    gate = Held()
    with package_index(wheels, at_request=gate) as index:
        try:
            yield gate, index
        finally:
            gate.go.set()


def left_of(bench: ContainerBench) -> list[str]:
    folder = bench.home / "environments"
    return [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []


def start_and_hold(bench: ContainerBench, held: tuple[Held, Index], **options: Any) -> str:
    """A run whose build waits for a package until its gate is opened."""
    gate, index = held
    wants(bench, index)
    run_id = bench.start("t.py", **options)
    assert gate.reached.wait(LONG)
    return run_id


def test_canceling_a_build_leaves_no_container_and_no_half_environment(
    bench: ContainerBench, held: tuple[Held, Index]
) -> None:
    run_id = start_and_hold(bench, held)
    assert bench.containers() == [f"{bench.container(run_id)}-room"]

    assert bench.run("cancel", "-r", run_id, "--grace", "1s").code == 0

    assert bench.record()["reason"] == "canceled"
    wait_for(lambda: bench.containers() == [])
    assert left_of(bench) == []


def test_killing_the_builder_ends_the_container_too(bench: ContainerBench, held: tuple[Held, Index]) -> None:
    run_id = start_and_hold(bench, held)
    guardian, supervisor = (bench.holder(run_id, byte) for byte in (0, 1))

    for pid in (guardian, supervisor):
        os.kill(pid, signal.SIGKILL)

    wait_for(lambda: is_gone(supervisor) and bench.containers() == [])
    held[0].go.set()
    assert bench.submit("t.py").code == 0, "the next run builds it anew"


def test_a_container_that_is_removed_during_the_build_is_reported(
    bench: ContainerBench, held: tuple[Held, Index]
) -> None:
    run_id = start_and_hold(bench, held)

    bench.daemon.run("rm", "-f", f"{bench.container(run_id)}-room")
    ended = bench.event(run_id, "ended")

    assert ended["reason"] == "preparation"
    assert "is gone" in ended["detail"]
    assert left_of(bench) == []


def test_a_docker_that_is_restarted_during_the_build_is_said_so(
    bench: ContainerBench, held: tuple[Held, Index], private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon()
    run_id = start_and_hold(bench, held, env=daemon.environment)

    daemon.restart()
    held[0].go.set()
    ended = bench.event(run_id, "ended")

    assert ended["reason"] == "preparation"
    assert "is gone" in ended["detail"]
    assert left_of(bench) == []
    wait_for(lambda: daemon.containers() == [])
