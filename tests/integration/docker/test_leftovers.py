"""A run leaves no container, whenever its supervisor dies, and containers of others are not touched."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.containers import container_shell
from holdfast.farside.containers.daemon import forget
from holdfast.farside.containers.docker_options import SHELL_LABEL
from holdfast.farside.operations import leftover_containers
from holdfast.farside.system.layout import Home
from integration.docker.benches import ContainerBench
from integration.runs.conftest import end_what_is_left
from kit.docker.daemon import Daemon
from kit.docker.images import PYTHON
from kit.waiting import wait_for

SLEEPER = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.05)\n"
HANG = 'touch "$there"; exec sleep 1000'
NAME = 'for word; do [ "$last" = --name ] && name=$word; last=$word; done'
CREATED = 'shift; for word; do shift; [ "$word" = -d ] || set -- "$@" "$word"; done; {real} create "$@" || exit'
MOMENTS = {
    "before it is made": HANG,
    "when it is made": f"{CREATED}; {HANG}",
    "when it runs": f'{{real}} "$@" || exit; {HANG}',
}
MONITORED = """
{real} "$@" || exit
%s
setsid {folder}/conmon -c id -n "$name" >/dev/null 2>&1 </dev/null &
while [ ! -e "{folder}/$name" ]; do sleep 0.01; done
"""
MONITOR = """#!/bin/sh
trap '{real} kill "$4"; exit 1' TERM
: >"${0%/*}/$4"
{real} wait "$4" &
wait $!
"""
"""Like Podman's: a child of the process that started the container, which ends with it."""

InFront = Callable[[str], ContainerBench]


@pytest.fixture
def bench(tmp_path: Path, docker: Daemon, holdfast: Callable[..., Any]) -> Iterator[ContainerBench]:
    root = tmp_path / "project"
    root.mkdir()
    home = Path(os.environ["HOLDFAST_HOME"])
    made = ContainerBench(root, home, holdfast, docker, "docker", os.getuid(), os.getgid(), docker.environment)
    made.target()
    made.write("t.py", SLEEPER)
    yield made
    end_what_is_left(made.home)
    for name in made.containers():
        docker.run("rm", "-f", name, check=False)


@pytest.fixture
def in_front(bench: ContainerBench, tmp_path: Path) -> InFront:
    """`in_front(script)`: a bench with a `docker` that runs the script for `docker run -d …`, and otherwise acts as the
    real one. `{real}` is that one; `$there` is a file that the test sees."""

    def make(script: str) -> ContainerBench:
        real = shutil.which("docker") or ""
        folder = tmp_path / "front"
        folder.mkdir()
        program = folder / "docker"
        body = script.replace("{real}", real).replace("{folder}", str(folder))
        case = f'case "$*" in "run "*" -d "*|"run -d "*) ;; *) exec {real} "$@" ;; esac'
        program.write_text(f"#!/bin/sh\nthere={folder}/there\n{case}\n{body}\n")
        program.chmod(0o755)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        return replace(bench, variables={**bench.variables, "PATH": path})

    return make


def managed(bench: ContainerBench) -> ContainerBench:
    bench.target("userManagedEnvironment: false")
    bench.write("aml_config/conda_dependencies.yml", "dependencies:\n  - pip:\n    - six\n")
    return bench


def is_over(bench: ContainerBench, run_id: str) -> dict[str, Any]:
    """The journal's last line, once the run has no owner any more."""
    from holdfast.farside.run.liveness import is_alive

    last = bench.event(run_id, "ended")
    wait_for(lambda: not is_alive(str(bench.far(run_id))), what="its processes are gone")
    return last


@pytest.mark.parametrize("script", MOMENTS.values(), ids=MOMENTS)
def test_a_supervisor_that_is_killed_while_an_environment_is_built_leaves_no_container(
    in_front: InFront, tmp_path: Path, script: str
) -> None:
    bench = managed(in_front(script))
    run_id = bench.start("t.py")
    wait_for((tmp_path / "front" / "there").exists)
    os.kill(bench.holder(run_id, 1), signal.SIGKILL)
    assert is_over(bench, run_id)["reason"] == "supervisor-died"
    wait_for(lambda: bench.containers() == [])


@pytest.mark.parametrize("moment", ["before it is made", "when it is made"])
def test_a_cancel_while_the_container_is_made_tells_of_no_process_and_leaves_none(
    in_front: InFront, tmp_path: Path, moment: str
) -> None:
    bench = in_front(MOMENTS[moment])
    run_id = bench.start("t.py")
    wait_for((tmp_path / "front" / "there").exists)
    assert bench.run("cancel", "-r", run_id).code == 0
    assert is_over(bench, run_id)["reason"] == "canceled"
    assert [each for each in bench.journal(run_id) if each["e"] == "swept"] == []
    wait_for(lambda: bench.containers() == [])


def test_a_start_that_docker_refuses_tells_of_no_process(bench: ContainerBench) -> None:
    bench.target("network: nowhere")
    done = bench.submit("t.py")
    (run_id,) = bench.ids()
    assert is_over(bench, run_id)["reason"] == "container", done.err
    assert [each for each in bench.journal(run_id) if each["e"] == "swept"] == []
    assert "left behind" not in done.out + done.err


def test_the_monitor_of_an_engine_without_a_daemon_is_no_process_of_the_run(in_front: InFront, tmp_path: Path) -> None:
    bench = managed(in_front(MONITORED % NAME))
    monitor = tmp_path / "front" / "conmon"
    monitor.write_text(MONITOR.replace("{real}", shutil.which("docker") or ""))
    monitor.chmod(0o755)
    bench.write("aml_config/conda_dependencies.yml", "dependencies:\n  - python=3.11\n")
    bench.write("t.py", "print('up')\n")
    done = bench.submit("t.py")
    (run_id,) = bench.ids()
    assert is_over(bench, run_id)["reason"] == "completed", done.err + (bench.far(run_id) / "control_log").read_text()
    assert [each for each in bench.journal(run_id) if each["e"] == "swept"] == []
    wait_for(lambda: bench.containers() == [])


@pytest.mark.parametrize("is_managed", [True, False])
def test_a_container_of_another_owner_with_the_same_name_stays(
    in_front: InFront, docker: Daemon, is_managed: bool
) -> None:
    bench = in_front(f'{NAME}\n{{real}} create --label other=1 --name "$name" {PYTHON} >/dev/null; exec {{real}} "$@"')
    if is_managed:
        managed(bench)
    done = bench.submit("t.py")
    (run_id,) = bench.ids()
    (name,) = [each for each in docker.containers("--filter", "label=other") if run_id in each]
    try:
        assert is_over(bench, run_id)["reason"] == ("preparation" if is_managed else "container")
        assert name in docker.containers("--filter", "label=other")
        assert "docker rm" not in done.out + done.err
        assert f"There is a container `{name}` already." in done.out + done.err
    finally:
        docker.run("rm", "-f", name)


def test_a_shell_is_marked_as_one_and_is_not_ended(
    docker: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    home.make()
    entry = container_shell.of_image(home, container_shell.nothing_but(PYTHON), "", {})
    words = [word for word in entry["before"] if word != "--rm"]
    for name, time_ in (("shell-running", "1000"), ("shell-ended", "0")):
        docker.run(*words[:1], "-d", "--name", name, *words[1:], *entry["after"], "sleep", time_)
    try:
        wait_for(lambda: docker.inspect("shell-ended")["State"]["Status"] == "exited")
        monkeypatch.setattr(leftover_containers, "YOUNG", -1.0)
        forget(home)
        assert leftover_containers.remove(home) == ["shell-ended"]
        assert SHELL_LABEL in docker.inspect("shell-running")["Config"]["Labels"]
    finally:
        docker.run("rm", "-f", "shell-running", "shell-ended", check=False)
