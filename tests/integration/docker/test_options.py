"""What a compute target says and what Docker makes of it; what cannot work is reported with file, key and remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.docker.benches import ContainerBench
from integration.runs.conftest import end_what_is_left
from kit.disks import fill, small_disk
from kit.docker.daemon import Daemon, Settings
from kit.docker.images import PLAIN, PYTHON
from kit.waiting import wait_for


@pytest.fixture
def bench(tmp_path: Path, docker: Daemon, holdfast: Callable[..., Any]) -> Iterator[ContainerBench]:
    root = tmp_path / "project"
    root.mkdir()
    home = Path(os.environ["HOLDFAST_HOME"])
    about = (docker, "docker", os.getuid(), os.getgid(), docker.environment)
    made = ContainerBench(root, home, holdfast, *about)
    made.target()
    made.write("t.py", "print('ran')\n")
    yield made
    end_what_is_left(made.home)


def test_shared_memory_is_half_of_the_machines_by_default(bench: ContainerBench) -> None:
    bench.write("t.py", "import os\nfound = os.statvfs('/dev/shm')\nprint(found.f_blocks * found.f_frsize)\n")
    size = int(bench.submit("t.py").out)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert abs(size - memory // 2) < 1 << 20


def test_an_option_that_docker_does_not_know_is_named_with_the_keys_it_may_come_from(bench: ContainerBench) -> None:
    bench.target("dockerArguments: --no-such-option=1")
    done = bench.submit("t.py")
    assert done.code != 0 and done.out == ""
    assert "no-such-option" in done.err and "`dockerArguments`" in done.err and "aml_config/box.compute" in done.err
    wait_for(lambda: bench.containers() == [])


def test_a_network_that_is_not_there_is_told_with_its_key(bench: ContainerBench) -> None:
    bench.target("network: no-such-network")
    done = bench.submit("t.py")
    assert done.code != 0
    for word in ("no-such-network", "`network`", "aml_config/box.compute"):
        assert word in done.err
    wait_for(lambda: bench.containers() == [])


def test_the_images_own_python_where_there_is_none_is_told_with_the_keys(bench: ContainerBench) -> None:
    bench.target(image=PLAIN)
    done = bench.submit("t.py")
    assert done.code != 0 and done.out == ""
    for word in (PLAIN, "userManagedEnvironment", "pythonLocation", "aml_config/box.compute"):
        assert word in done.err


def test_a_python_that_the_image_has_not_is_told_with_its_key(bench: ContainerBench) -> None:
    bench.target("pythonLocation: /opt/no/such/python")
    done = bench.submit("t.py")
    assert done.code != 0 and done.out == ""
    for word in ("`/opt/no/such/python` cannot be started", "`pythonLocation` in aml_config/box.compute", PYTHON):
        assert word in done.err, done.err
    assert "HOLDFAST_HOME" not in done.err
    wait_for(lambda: bench.containers() == [])


def test_a_daemon_on_another_machine_is_refused_and_remotedocker_named(bench: ContainerBench) -> None:
    done = bench.submit("t.py", env={"DOCKER_HOST": "tcp://gpu1.example:2375"})
    assert done.code != 0 and done.out == ""
    assert "tcp://gpu1.example:2375" in done.err and "attach remotedocker" in done.err


def test_a_daemon_that_does_not_run_is_told_with_what_starts_it(bench: ContainerBench, tmp_path: Path) -> None:
    done = bench.submit("t.py", env={"DOCKER_HOST": f"unix://{tmp_path}/nobody.sock"})
    assert done.code != 0 and done.out == ""
    assert "Docker does not run" in done.err and "systemctl start docker" in done.err


def test_a_home_that_the_daemon_cannot_see_is_told_with_holdfast_home(bench: ContainerBench) -> None:
    """Like a network home that is closed to root: it is mounted for the client, and not for the daemon."""
    home = bench.home.parent / "hidden"
    home.mkdir()
    words = [sys.executable, "-m", "holdfast", "submit", "-c", "box", "t.py"]
    line = 'mount -t tmpfs none "$0" && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", line, str(home), *words],
        cwd=bench.root,
        env={**os.environ, **bench.variables, "HOLDFAST_HOME": str(home / ".holdfast")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0 and done.stdout == ""
    assert f"`{home}" in done.stderr, done.stderr
    assert "HOLDFAST_HOME" in done.stderr, done.stderr


def test_a_full_disk_of_dockers_is_told_with_what_makes_room(
    bench: ContainerBench, private_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 700):
        daemon = private_daemon(Settings(root=str(tmp_path / "disk" / "root")))
        assert bench.submit("t.py", env=daemon.environment).out == "ran\n"
        wait_for(lambda: daemon.containers() == [], what="nothing is left that would make room")
        fill(tmp_path / "disk")
        done = bench.submit("t.py", env=daemon.environment)
        assert done.code != 0 and done.out == ""
        assert "full" in done.err and "docker system df" in done.err, done.err
        daemon.close()
