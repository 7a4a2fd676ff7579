"""A daemon that was started anew while a run went on: what ended the run is what is recorded."""

from __future__ import annotations

from collections.abc import Callable

from docker.benches import ContainerBench
from docker.test_endings import SLEEPER, begun, ended, kind, make_bench, nothing_is_left  # noqa: F401 - fixtures

from kit.docker.daemon import Daemon, Settings


def test_a_container_that_outlived_a_restart_and_is_removed_is_recorded_as_removed(
    make_bench: Callable[[Daemon], ContainerBench],  # noqa: F811
    private_daemon: Callable[..., Daemon],
) -> None:
    daemon = private_daemon(Settings(live_restore=True))
    bench = make_bench(daemon)
    run_id = begun(bench, SLEEPER)
    daemon.restart()
    daemon.run("rm", "-f", f"holdfast-{run_id}")
    assert ended(bench, run_id)["reason"] == "container-removed"
    nothing_is_left(bench, run_id)


def test_a_daemon_that_died_and_ends_what_it_finds_when_it_is_back_is_recorded_as_just_that(
    make_bench: Callable[[Daemon], ContainerBench],  # noqa: F811
    private_daemon: Callable[..., Daemon],
) -> None:
    daemon = private_daemon()
    bench = make_bench(daemon)
    run_id = begun(bench, SLEEPER)
    daemon.kill()
    daemon.start()
    assert ended(bench, run_id)["reason"] == "docker-stopped"
    nothing_is_left(bench, run_id)
