"""What a script in a container sees: its output by name, its home, its GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.docker.benches import ContainerBench, container_bench, kind  # noqa: F401 - fixtures
from integration.runs.conftest import end_what_is_left
from kit.docker.daemon import Daemon, Settings
from kit.docker.images import CUDA, PYTHON
from kit.nvml import Device, Simulated
from kit.waiting import wait_for

K80 = """\
name: Tesla K80
major: 3 minor: 7 memoryClockRate (GHz) 2.505
pciBusID 06c3:00:00.0
Total memory: 11.17GiB
Free memory: 11.11GiB
"""
SEES = """
import ctypes, os
try:
    ctypes.CDLL("libnvidia-ml.so.1")
    print("sees a GPU", os.environ.get("NVIDIA_VISIBLE_DEVICES"))
except OSError:
    print("sees no GPU", os.environ.get("NVIDIA_VISIBLE_DEVICES"))
"""


@pytest.fixture
def here(tmp_path: Path, docker: Daemon, holdfast: Callable[..., Any]) -> Iterator[ContainerBench]:
    """On this machine alone, where both kinds are the same code."""
    root = tmp_path / "project"
    root.mkdir()
    home = Path(os.environ["HOLDFAST_HOME"])
    about = (docker, "docker", os.getuid(), os.getgid(), docker.environment)
    made = ContainerBench(root, home, holdfast, *about)
    made.target()
    yield made
    end_what_is_left(made.home)


@pytest.fixture
def gpus(here: ContainerBench, docker_gpus_of: Callable[..., Simulated]) -> Simulated:
    return docker_gpus_of(here.home.parent, Device(pci="06c3:00:00.0"))


def notes(bench: ContainerBench) -> list[str]:
    return [each["text"] for each in bench.journal(bench.ids()[-1]) if each["e"] == "note"]


def test_a_script_may_open_its_own_output_by_name(here: ContainerBench) -> None:
    here.write("t.py", "print('a', flush=True)\nopen('/dev/stderr', 'w').write('b\\n')\nprint('c')\n")
    assert here.submit("t.py").out == "a\nb\nc\n"


def test_the_home_is_kept_between_runs_and_is_not_the_accounts_own(container_bench: ContainerBench) -> None:  # noqa: F811
    bench = container_bench
    bench.write(
        "t.py",
        "import os\npath = os.path.expanduser('~/.cache/model')\nos.makedirs(path, exist_ok=True)\n"
        "open(path + '/x', 'a').write('.')\nprint(os.path.getsize(path + '/x'))\n",
    )
    assert [bench.submit("t.py").out for _ in range(2)] == ["1\n", "2\n"]
    kept = bench.home / "container-home" / ".cache" / "model" / "x"
    assert kept.stat().st_uid == bench.uid


def test_the_container_is_named_after_the_run_and_labelled(here: ContainerBench) -> None:
    here.write("t.py", "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\n")
    run_id = here.start("t.py")
    wait_for(lambda: (here.far(run_id) / "driver_log").read_bytes() == b"up\n")
    about = here.daemon.inspect(here.container(run_id))
    labels = about["Config"]["Labels"]
    assert labels["holdfast.run"] == run_id
    assert labels["holdfast.project"] == here.far(run_id).parent.name
    assert labels["holdfast.home"] == str(here.home)
    assert about["HostConfig"]["NetworkMode"] == "host"
    (here.there(run_id) / "go").touch()
    here.event(run_id, "ended")


def test_modes_of_new_files_are_those_of_the_users_own_mask(here: ContainerBench) -> None:
    here.write("t.py", "import os\nopen('outputs/x', 'w').close()\nprint(oct(os.stat('outputs/x').st_mode & 0o777))\n")
    before = os.umask(0o027)
    try:
        assert here.submit("t.py").out == "0o640\n"
    finally:
        os.umask(before)


def test_gpus_that_are_given_stand_before_the_scripts_first_byte(here: ContainerBench, gpus: Simulated) -> None:
    here.target("nvidiaDocker: true")
    here.write("t.py", SEES)
    done = here.submit("t.py", env=gpus.environment)
    assert (done.code, done.out) == (0, K80 + f"sees a GPU {gpus.uuids()[0]}\n"), done.err
    assert notes(here) == []


@pytest.mark.parametrize("image", [PYTHON, CUDA])
def test_without_the_key_the_container_gets_no_gpu_and_a_note_says_what_to_write(
    here: ContainerBench, gpus: Simulated, image: str
) -> None:
    here.target(image=image)
    here.write("t.py", SEES)
    done = here.submit("t.py", env=gpus.environment)
    assert done.out == "sees no GPU void\n", done.err
    (note,) = notes(here)
    assert "nvidiaDocker: true" in note and "aml_config/box.compute" in note
    assert (f"The image `{CUDA}` is made for GPUs" in note) is (image == CUDA)


def test_where_no_gpu_is_wanted_nothing_is_said(here: ContainerBench, gpus: Simulated) -> None:
    here.target("nvidiaDocker: false", image=CUDA)
    here.write("t.py", SEES)
    assert here.submit("t.py", env=gpus.environment).out == "sees no GPU void\n"
    assert notes(here) == []


def test_a_docker_that_cannot_give_gpus_is_refused_before_the_script_starts(
    here: ContainerBench, gpus: Simulated, private_daemon: Callable[..., Daemon]
) -> None:
    daemon = private_daemon(Settings(hook=False))
    here.target("nvidiaDocker: true")
    here.write("t.py", "print('ran')\n")
    done = here.submit("t.py", env={**gpus.environment, **daemon.environment})
    assert done.code != 0
    assert "ran" not in done.out
    for word in ("`nvidiaDocker: true` in aml_config/box.compute", "nvidia-container-toolkit", "nvidiaDocker: false"):
        assert word in done.err
    wait_for(lambda: daemon.containers() == [])


def test_gpus_that_are_asked_for_on_a_machine_without_a_driver_are_refused(here: ContainerBench) -> None:
    here.target("nvidiaDocker: true")
    here.write("t.py", "print('ran')\n")
    done = here.submit("t.py")
    assert done.code != 0 and done.out == ""
    assert "`nvidiaDocker: true` in aml_config/box.compute" in done.err and "no NVIDIA driver" in done.err
