"""What a script and a shell find in their containers: an environment that cannot change, all folders by both of their
names, and, for a shell, what the target gives to a run."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.docker.benches import ContainerBench, container_bench  # noqa: F401 - a fixture
from integration.docker.environment_runs import built, wants
from kit.nvml import Simulated
from kit.package_server import Index
from kit.waiting import wait_for

CHANGES = """
import demo, helper
try:
    open(demo.__file__, "a").write("x = 1\\n")
    print("changed")
except OSError:
    print("kept")
"""


@pytest.fixture
def kind() -> str:
    return "docker"


@pytest.mark.parametrize("kind", ["docker", "remotedocker"])
def test_the_environment_cannot_be_changed_and_bytecode_is_kept(
    container_bench: ContainerBench,  # noqa: F811
    index: Index,
) -> None:
    bench = container_bench
    bench.target("userManagedEnvironment: false")
    wants(bench, index)
    bench.write("helper.py", "")
    bench.write("t.py", CHANGES)

    done = bench.submit("t.py")

    assert done.out == "kept\n", done.err
    (environment,) = built(bench)
    assert [each.name for each in environment.rglob("demo.*.pyc")] != []
    wait_for(lambda: not list(environment.rglob("helper.*.pyc")))  # what belongs to one run alone


def test_a_home_behind_a_link_has_both_names_inside(
    container_bench: ContainerBench,  # noqa: F811
    index: Index,
    tmp_path: Path,
) -> None:
    bench, real, link = container_bench, tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    bench.target("userManagedEnvironment: false")
    wants(bench, index)
    bench.write(
        "t.py", "import os, sys\nprint(os.path.isdir(sys.argv[1]), sys.prefix, len(os.listdir(sys.argv[2])) > 0)"
    )

    done = bench.submit(
        "t.py",
        str(real / "home" / "runs"),
        str(real / "home" / "environments"),
        env={"HOLDFAST_HOME": str(link / "home")},
    )

    assert done.code == 0, done.err
    assert done.out.startswith(f"True {link / 'home' / 'environments'}/")
    assert done.out.endswith(" True\n")


def test_a_shell_gets_what_the_target_gives_to_a_run(
    container_bench: ContainerBench,  # noqa: F811
    docker_gpus_of: Callable[..., Simulated],
    tmp_path: Path,
) -> None:
    bench = container_bench
    data = tmp_path / "data"
    data.mkdir()
    (data / "a").write_text("1\n")
    bench.target(f'volumes: ["{data}:/data"]', "network: none", "shmSize: 70m", "nvidiaDocker: true")
    gpus = docker_gpus_of(bench.home.parent)
    show = "cat /data/a; id -un; ls /sys/class/net; df -k /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2"
    sees = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1'); print('a GPU')"

    shell = bench.run("experiment", "shell", "-t", "box", "sh", "-c", show, env=gpus.environment)
    python = bench.run("experiment", "shell", "-t", "box", "python3", "-c", sees, env=gpus.environment)

    assert shell.out.split() == ["1", pwd.getpwuid(os.getuid()).pw_name, "lo", str(70 * 1024)], shell.err
    assert python.out == "a GPU\n", python.err
    wait_for(lambda: bench.containers() == [])


def test_a_shell_whose_volume_is_missing_is_told_where_it_is_written(container_bench: ContainerBench) -> None:  # noqa: F811
    container_bench.target('volumes: ["/nowhere/at/all:/data"]')

    done = container_bench.run("experiment", "shell", "-t", "box", "true")

    assert done.code != 0
    assert "`volumes[0]` in aml_config/box.compute names `/nowhere/at/all`" in done.err
