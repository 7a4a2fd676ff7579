"""How a run in a container ends by Docker, by others, or while Docker works. Each cause is recorded correctly, and
nothing is left running. How any run ends is in `integration/products`."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.docker.benches import ContainerBench
from integration.docker.ending_runs import POLITE, SLEEPER, behind_ssh, ended, keeper
from kit import processes
from kit.docker.daemon import Daemon
from kit.docker.images import PYTHON
from kit.waiting import wait_for


@pytest.fixture
def bench(make_bench: Callable[[Daemon], ContainerBench], docker: Daemon) -> ContainerBench:
    return make_bench(docker)


HOLDING = """#!/bin/sh
case "$*" in
*"--name holdfast-project_"*)
    {before}
    : >{held}
    while [ ! -e {go} ]; do sleep 0.02; done
    {after} ;;
*) exec {docker} "$@" ;;
esac
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_cancel_while_docker_starts_the_container_leaves_none(
    bench: ContainerBench, moment: str, tmp_path: Path
) -> None:
    """`docker run` is delayed until the run has ended: before it asks the daemon, and after the daemon has started
    it."""
    held, go, real = tmp_path / "held", tmp_path / "go", shutil.which("docker")
    steps = {"before": ":", "after": f'{real} "$@"'} if moment == "before" else {"before": f'{real} "$@"', "after": ":"}
    program = tmp_path / "programs" / "docker"
    program.parent.mkdir()
    program.write_text(HOLDING.format(docker=real, held=held, go=go, **steps))
    program.chmod(0o755)
    bench.write("t.py", SLEEPER)
    run_id = bench.start("--grace", "1s", "t.py", env={"PATH": f"{program.parent}:{os.environ['PATH']}"})
    wait_for(held.exists)
    done = bench.run("cancel", "-r", run_id)
    assert done.code == 0, done.err
    assert ended(bench, run_id)["reason"] == "canceled"
    go.touch()
    bench.until_nothing_is_left(run_id)


@pytest.mark.parametrize("script", [POLITE, SLEEPER], ids=["polite", "not listening"])
def test_docker_stop_is_recorded_as_a_stop_from_outside(bench: ContainerBench, script: str) -> None:
    run_id = bench.begin(script)
    (container,) = bench.containers()
    bench.daemon.run("stop", container)
    last = ended(bench, run_id)
    assert last["reason"] == "container-stopped"
    assert (last["code"], last["signal"]) == ((0, None) if script is POLITE else (None, signal.SIGTERM))
    expected = b"up\nsaved\n" if script is POLITE else b"up\n"
    assert (bench.far(run_id) / "driver_log").read_bytes() == expected
    bench.until_nothing_is_left(run_id)


@behind_ssh
def test_docker_kill_is_recorded_as_a_stop_from_outside(bench: ContainerBench) -> None:
    run_id = bench.begin(SLEEPER)
    (container,) = bench.containers()
    bench.daemon.run("kill", container)
    assert ended(bench, run_id)["reason"] == "container-stopped"
    bench.until_nothing_is_left(run_id)


@behind_ssh
def test_a_container_that_was_removed_is_recorded_as_removed(bench: ContainerBench) -> None:
    run_id = bench.begin(SLEEPER)
    (container,) = bench.containers()
    bench.daemon.run("rm", "-f", container)
    assert ended(bench, run_id)["reason"] == "container-removed"
    bench.until_nothing_is_left(run_id)


def test_a_signal_that_the_script_outlives_is_no_stop(bench: ContainerBench) -> None:
    script = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: print("heard", flush=True))
print("up", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
"""
    run_id = bench.begin(script)
    (container,) = bench.containers()
    bench.daemon.run("kill", "--signal", "USR1", container)
    wait_for(lambda: b"heard" in (bench.far(run_id) / "driver_log").read_bytes())
    (bench.there(run_id) / "go").touch()
    assert ended(bench, run_id)["reason"] == "completed"


@behind_ssh
def test_memory_that_runs_out_for_the_script_is_recorded_with_the_limit(bench: ContainerBench) -> None:
    bench.target("memory: 64m")
    bench.write("t.py", "print('up', flush=True)\nheld = [bytearray(1 << 20) for _ in range(1000)]\n")
    done = bench.submit("t.py")
    (run_id,) = bench.ids()
    last = ended(bench, run_id)
    assert last["reason"] == "out-of-memory", done.err
    assert "64m" in last["detail"] and "box.compute" in last["detail"]
    assert (bench.far(run_id) / "driver_log").read_bytes() == b"up\n"
    bench.until_nothing_is_left(run_id)


def test_memory_that_runs_out_for_a_child_is_a_note_and_the_scripts_word_counts(bench: ContainerBench) -> None:
    bench.target("memory: 64m")
    script = """
import subprocess, sys
eater = "held = [bytearray(1 << 20) for _ in range(1000)]"
code = subprocess.run([sys.executable, "-c", eater]).returncode
print("child", code)
sys.exit(7)
"""
    bench.write("t.py", script)
    done = bench.submit("t.py")
    assert (done.code, done.out) == (7, "child -9\n"), done.err
    (run_id,) = bench.ids()
    assert ended(bench, run_id)["reason"] == "exit-code"
    notes = [each["text"] for each in bench.journal(run_id) if each["e"] == "note"]
    assert any("memory ran out" in each and "64m" in each for each in notes), notes


@behind_ssh
def test_a_keeper_that_is_killed_takes_the_container_with_it(bench: ContainerBench) -> None:
    run_id = bench.begin(SLEEPER)
    os.kill(keeper(bench, run_id), signal.SIGKILL)
    last = ended(bench, run_id)
    assert (last["reason"], last["signal"]) == ("killed", signal.SIGKILL)
    bench.until_nothing_is_left(run_id)


@behind_ssh
def test_a_container_without_an_owner_is_found_by_check_and_removed_by_clean(bench: ContainerBench) -> None:
    bench.write("t.py", "print('x')")
    assert bench.submit("t.py").code == 0
    (run_id,) = bench.ids()
    bench.until_nothing_is_left(run_id)
    project = bench.far(run_id).parent.name
    called = bench.container(run_id)
    labels = {"holdfast.home": bench.home, "holdfast.run": run_id, "holdfast.project": project}
    words = [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
    bench.daemon.run("run", "-d", "--name", called, *words, PYTHON, "sleep", "1000")
    done = bench.run("experiment", "clean", "--all")
    assert done.code == 0 and called in done.out + done.err, done
    assert bench.containers() == []


def test_a_script_that_is_over_before_its_supervisor_looks_is_not_waited_for(bench: ContainerBench) -> None:
    bench.write("t.py", "import os, time\nprint('up')\nwhile not os.path.exists('outputs/go'):\n    time.sleep(0.01)\n")
    run_id = bench.start("t.py")
    supervisor = bench.holder(run_id, 1)
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    bench.event(run_id, "started")
    os.kill(supervisor, signal.SIGSTOP)
    (bench.there(run_id) / "outputs" / "go").touch()
    wait_for((bench.far(run_id) / "inside" / "status.json").exists)
    wait_for(lambda: not any(each.is_alive for each in processes.below(supervisor)), what="its keeper has ended")
    os.kill(supervisor, signal.SIGCONT)
    assert ended(bench, run_id)["reason"] == "completed"
    bench.until_nothing_is_left(run_id)


def test_a_frozen_container_is_ended_all_the_same(bench: ContainerBench) -> None:
    run_id = bench.begin(SLEEPER, "--grace", "1s")
    (container,) = bench.containers()
    bench.daemon.run("pause", container)
    assert bench.run("cancel", "-r", run_id).code == 0
    assert ended(bench, run_id)["reason"] == "canceled"
    bench.until_nothing_is_left(run_id)
