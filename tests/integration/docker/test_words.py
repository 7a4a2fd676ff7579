"""What people read about runs in containers: the cause, by file and key, and commands to paste."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.docker.benches import ContainerBench
from integration.runs.conftest import end_what_is_left
from kit.docker.daemon import Daemon
from kit.waiting import wait_for

WAITER = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.1)\n"


@pytest.fixture
def bench(tmp_path: Path, docker: Daemon, holdfast: Callable[..., Any]) -> Iterator[ContainerBench]:
    root = tmp_path / "project"
    root.mkdir()
    home = Path(os.environ["HOLDFAST_HOME"])
    made = ContainerBench(root, home, holdfast, docker, "docker", os.getuid(), os.getgid(), docker.environment)
    made.target()
    made.write("t.py", "print('ran')\n")
    yield made
    end_what_is_left(made.home)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("network: no-such-network", "network"),
        ("cpus: 9999", "cpus"),
        ("dockerArguments: [--ulimt=x]", "dockerArguments"),
    ],
)
def test_a_value_that_docker_does_not_take_is_traced_to_file_and_key(
    bench: ContainerBench, line: str, key: str
) -> None:
    bench.target(line)
    done = bench.submit("t.py")
    assert done.code != 0 and done.out == ""
    assert f"Correct `{key}` in aml_config/box.compute." in done.err
    assert "holdfast computetarget check box\n" in done.err
    assert ("Did you mean --ulimit?" in done.err) is (key == "dockerArguments")


def test_a_program_that_the_image_does_not_have_is_told_as_a_shell_would(bench: ContainerBench) -> None:
    bench.write("t.py", WAITER)
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    missing = bench.run("experiment", "shell", "-r", run_id, "no-such-program")
    assert (missing.code, missing.out) == (127, "")
    assert missing.err.splitlines() == ["holdfast: The image has no program `no-such-program`."]
    assert bench.run("experiment", "shell", "-r", run_id, "sh", "-c", "exit 7").code == 7
    (bench.there(run_id) / "go").touch()
    assert bench.run("logs", "-f", "-r", run_id).code == 0
    after = bench.run("experiment", "shell", "-r", run_id)
    assert "holdfast experiment shell -t box" in after.err


def test_the_environment_of_a_run_in_an_image_is_not_taken_without_the_image_in_silence(bench: ContainerBench) -> None:
    bench.target("userManagedEnvironment: false")
    done = bench.submit("t.py")
    assert done.code == 0, done.err
    assert "The project lists no packages" in done.err
    (first,) = bench.ids()
    here = bench.run("submit", "-c", "local", "--environment-of", first, "t.py")
    assert "so only the packages are the same" in here.err
    page = bench.run("history", "info", "-o", "table")
    assert f"environment_of: {first}" in page.out
    bench.write("aml_config/conda_dependencies.yml", "dependencies: []\n")
    again = bench.submit("t.py")
    assert again.code == 0, again.err
    assert "no packages" not in again.err


def test_the_own_python_of_an_image_cannot_be_had_without_it(bench: ContainerBench) -> None:
    assert bench.submit("t.py").code == 0
    (first,) = bench.ids()
    done = bench.run("submit", "-c", "local", "--environment-of", first, "t.py")
    assert done.code != 0
    assert "ran on the Python of its image" in done.err and "-t box" in done.err


def test_a_child_that_had_no_memory_is_noted_of_a_run_that_was_canceled(bench: ContainerBench) -> None:
    bench.target("memory: 64m")
    eater = "held = [bytearray(1 << 20) for _ in range(1000)]"
    bench.write("t.py", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {eater!r}])\n" + WAITER)
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    done = bench.run("cancel")
    assert done.code == 0, done.err
    assert "Status: Canceled" in done.err
    assert "64m: raise `memory` in aml_config/box.compute." in done.err
