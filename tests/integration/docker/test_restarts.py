"""A daemon that is stopped, restarted, killed or away while a run goes on: the record says what ended the run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from integration.docker.benches import ContainerBench
from integration.docker.ending_runs import COUNTING, POLITE, SLEEPER, WAITING, behind_ssh, ended
from integration.runs.conftest import members
from kit.docker.daemon import Daemon, Settings
from kit.waiting import wait_for


def test_a_container_that_outlived_a_restart_and_is_removed_is_recorded_as_removed(
    make_bench: Callable[[Daemon], ContainerBench],
    private_daemon: Callable[..., Daemon],
) -> None:
    daemon = private_daemon(Settings(live_restore=True))
    bench = make_bench(daemon)
    run_id = bench.begin(SLEEPER)
    daemon.restart()
    daemon.run("rm", "-f", bench.container(run_id))
    assert ended(bench, run_id)["reason"] == "container-removed"
    bench.until_nothing_is_left(run_id)


def test_a_daemon_that_died_and_ends_what_it_finds_when_it_is_back_is_recorded_as_just_that(
    make_bench: Callable[[Daemon], ContainerBench],
    private_daemon: Callable[..., Daemon],
) -> None:
    daemon = private_daemon()
    bench = make_bench(daemon)
    run_id = bench.begin(SLEEPER)
    daemon.kill()
    daemon.start()
    assert ended(bench, run_id)["reason"] == "docker-stopped"
    bench.until_nothing_is_left(run_id)


def test_a_daemon_that_is_restarted_ends_the_run_as_just_that(
    make_bench: Callable[[Daemon], ContainerBench], private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon()
    bench = make_bench(daemon)
    run_id = bench.begin(SLEEPER)
    daemon.restart()
    last = ended(bench, run_id)
    assert last["reason"] == "docker-stopped", bench.journal(run_id)
    bench.until_nothing_is_left(run_id)


@behind_ssh
def test_a_daemon_that_is_stopped_ends_the_run_as_just_that(
    make_bench: Callable[[Daemon], ContainerBench], private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon()
    bench = make_bench(daemon)
    run_id = bench.begin(POLITE)
    daemon.stop()
    last = ended(bench, run_id)
    assert last["reason"] == "docker-stopped", bench.journal(run_id)
    assert (bench.far(run_id) / "driver_log").read_bytes() == b"up\nsaved\n"
    wait_for(lambda: members(run_id) == [])
    daemon.start()
    bench.until_nothing_is_left(run_id)


@pytest.mark.parametrize("way", ["live-restore", "killed"])
def test_a_run_goes_on_through_a_daemon_that_is_away_and_no_byte_is_lost(
    way: str, make_bench: Callable[[Daemon], ContainerBench], private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon(Settings(live_restore=True))
    bench = make_bench(daemon)
    run_id = bench.begin(COUNTING + "import os\nwhile not os.path.exists('go'):\n    time.sleep(0.02)\nprint('end')\n")
    if way == "killed":
        daemon.kill()
    else:
        daemon.stop()
    assert [each["e"] for each in bench.journal(run_id) if each["e"] in ("exited", "ended")] == []
    daemon.start()
    (bench.there(run_id) / "go").touch()
    assert ended(bench, run_id)["reason"] == "completed"
    expected = b"up\n" + b"".join(b"%06d\n" % number for number in range(100_000)) + b"end\n"
    assert (bench.far(run_id) / "driver_log").read_bytes() == expected
    bench.until_nothing_is_left(run_id)


def test_a_run_ends_well_while_the_daemon_is_dead_and_its_container_goes_when_it_is_back(
    make_bench: Callable[[Daemon], ContainerBench], private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon(Settings(live_restore=True))
    bench = make_bench(daemon)
    run_id = bench.begin(WAITING)
    daemon.kill()
    (bench.there(run_id) / "go").touch()
    assert ended(bench, run_id)["reason"] == "completed"
    wait_for(lambda: members(run_id) == [])
    daemon.start()
    bench.until_nothing_is_left(run_id)


def test_everything_killed_while_the_daemon_is_dead_leaves_a_container_that_clean_finds(
    make_bench: Callable[[Daemon], ContainerBench], private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon(Settings(live_restore=True))
    bench = make_bench(daemon)
    run_id = bench.begin(SLEEPER)
    daemon.kill()
    for pid in [bench.holder(run_id, byte) for byte in (0, 1)]:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: members(run_id) == [])
    assert bench.record(run_id)["reason"] == "supervisor-died"
    daemon.start()
    name = bench.container(run_id)
    assert bench.containers() == [name]
    done = bench.run("experiment", "clean", "--all")
    assert name in done.out + done.err, done
    assert bench.containers() == []
