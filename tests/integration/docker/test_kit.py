"""The kit itself: daemons, images, registry and simulated GPUs behave as the other tests expect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit import processes
from kit.disks import fill, small_disk
from kit.docker import bridges, gpu_hook, holding
from kit.docker.daemon import Settings
from kit.docker.gpus import occupying_inside
from kit.docker.images import CUDA, ENTRYPOINT, EVERY, FOREIGN, MUSL, NO_SHELL, PLAIN, PYTHON, USER
from kit.docker.packages import reaching_packages
from kit.docker.registry import PASSWORD
from kit.nvml import Device
from kit.waiting import wait_for

pytestmark = pytest.mark.kit

COUNT = (
    "import ctypes\n"
    "library = ctypes.CDLL('libnvidia-ml.so.1')\n"
    "assert library.nvmlInit_v2() == 0\n"
    "count = ctypes.c_uint()\n"
    "library.nvmlDeviceGetCount_v2(ctypes.byref(count))\n"
    "print(count.value, flush=True)\n"
)


# ---- the daemon ----


def test_every_image_is_there_and_nothing_runs(private_daemon):
    daemon = private_daemon()
    assert sorted(daemon.images()) == sorted(f"{name}:latest" for name in EVERY)
    assert daemon.containers() == []


def test_a_daemon_leaves_no_process_no_bridge_and_no_file(private_daemon):
    daemon = private_daemon()
    daemon.run("run", "-d", "--name", "left", PLAIN, "sleep", "600")
    bridge = bridges.number(daemon.bridge)  # by its name it is another's soon
    daemon.close()
    assert not bridges.exists(bridge)
    assert not daemon.folder.exists()
    assert not daemon.root.exists()
    assert not [one.argv for one in processes.every() if str(daemon.folder) in " ".join(one.argv)]
    assert str(daemon.root) not in Path("/proc/self/mounts").read_text()


def test_stopping_ends_containers_and_starting_has_them_still(private_daemon):
    daemon = private_daemon()
    daemon.run("run", "-d", "--init", "--name", "one", PLAIN, "sleep", "600")
    daemon.restart()
    assert daemon.containers(every=False) == []
    assert daemon.inspect("one")["State"]["ExitCode"] == 143


@pytest.mark.parametrize("way", ["kill", "live restore"])
def test_containers_outlive_a_daemon_that_is_killed_or_restores(private_daemon, way):
    daemon = private_daemon(Settings(live_restore=True))
    daemon.run("run", "-d", "--init", "--name", "one", PLAIN, "sleep", "600")
    pid = daemon.inspect("one")["State"]["Pid"]
    if way == "kill":
        daemon.kill()
    else:
        daemon.stop()
    assert not daemon.answers()
    assert processes.is_alive(pid)
    daemon.start()
    assert daemon.containers(every=False) == ["one"]
    assert daemon.inspect("one")["State"]["Pid"] == pid


def test_two_daemons_do_not_see_each_other(docker, private_daemon):
    other = private_daemon(images=False)
    assert other.images() == []
    docker.run("run", "--rm", PLAIN, "true")  # its bridge is still there
    assert docker.gateway != other.gateway


def test_a_container_reaches_this_machine_by_its_network_or_by_the_bridge(docker):
    shown = docker.run("run", "--rm", "--network", "host", PLAIN, "readlink", "/proc/self/ns/net").stdout
    assert shown.strip() == str(Path("/proc/self/ns/net").readlink())
    bridged = docker.run("run", "--rm", PLAIN, "cat", "/proc/net/route").stdout
    assert len(bridged.splitlines()) == 3, "a default route and one for the bridge"


def test_a_daemon_that_a_killed_process_left_is_ended_by_the_next(private_daemon, monkeypatch):
    monkeypatch.setattr(holding, "_PREFIX", "hfd.left-")  # else the next may be one of another worker's
    program = (
        "import kit.docker.holding\n"
        f"kit.docker.holding._PREFIX = {holding._PREFIX!r}\n"
        "with kit.docker.holding.held() as daemon:\n"
        "    daemon.start()\n"
        "    print(daemon.folder, daemon.bridge, daemon.pid, flush=True)\n"
        "    input()\n"
    )
    tests = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    left = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with left:
        assert left.stdout is not None
        folder, bridge, pid = left.stdout.readline().split()
        left.kill()
    number = bridges.number(bridge)
    assert processes.is_alive(int(pid))
    private_daemon(images=False)
    assert not processes.is_alive(int(pid))
    assert not bridges.exists(number)
    assert not Path(folder).exists()


def test_processes_share_one_daemon_and_the_last_one_ends_it(docker_template, tmp_path):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "import kit.docker.daemon, kit.docker.holding\n"
        "kit.docker.daemon.CACHE = kit.docker.holding.CACHE = Path(sys.argv[1])\n"
        "with kit.docker.holding.shared(Path(sys.argv[2])) as daemon:\n"
        "    print(daemon.pid, daemon.folder, flush=True)\n"
        "    input()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    argv = [sys.executable, "-c", program, str(tmp_path), str(docker_template)]
    users = [
        subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ((pid, folder),) = {tuple(each.stdout.readline().split()) for each in users if each.stdout}
    for each in users[:2]:
        each.communicate("\n", timeout=180)
        assert processes.is_alive(int(pid))
    users[2].communicate("\n", timeout=180)
    assert [each.returncode for each in users] == [0, 0, 0]
    assert not processes.is_alive(int(pid))
    assert not Path(folder).exists()


def test_a_container_that_takes_more_than_its_memory_is_killed(docker, tmp_path):
    take = "x = bytearray(1 << 30)"
    docker.run("run", "--name", tmp_path.name, "--memory", "64m", PYTHON, "python3", "-c", take, check=False)
    try:
        # Docker hears of the end and of its cause by two events, in either order.
        wait_for(lambda: docker.inspect(tmp_path.name)["State"]["OOMKilled"], what="the cause is known")
        assert docker.inspect(tmp_path.name)["State"]["ExitCode"] == 137
    finally:
        docker.run("rm", tmp_path.name)


def test_a_daemon_can_have_a_disk_without_room(private_daemon, tmp_path):
    with small_disk(tmp_path / "disk", 400):
        daemon = private_daemon(Settings(root=str(tmp_path / "disk" / "root")))
        daemon.run("run", "--rm", PLAIN, "true")
        filler = fill(tmp_path / "disk")
        full = daemon.run("run", "--rm", PLAIN, "true", check=False)
        assert "no space left on device" in full.stderr
        filler.unlink()
        daemon.close()


# ---- images ----


def test_images_have_and_lack_what_they_say(docker):
    look = (
        "command -v python3 >/dev/null && echo python; ls /lib/ld-musl-* 2>/dev/null; cat /etc/os-release | head -n 1"
    )
    assert "python" in docker.run("run", "--rm", PYTHON, "sh", "-c", look).stdout.split()
    assert "python" not in docker.run("run", "--rm", PLAIN, "sh", "-c", look).stdout.split()
    assert "/lib/ld-musl-" in docker.run("run", "--rm", MUSL, "sh", "-c", look).stdout
    assert docker.run("run", "--rm", MUSL, "sh", "-c", "ls /lib64 /lib/*/libc.so.6", check=False).returncode != 0


def test_the_python_of_the_image_has_what_scripts_need(docker):
    code = "import ssl, sqlite3, ctypes, lzma, hashlib; print('whole')"
    assert docker.run("run", "--rm", PYTHON, "python3", "-c", code).stdout == "whole\n"


def test_marked_images_are_as_users_have_them(docker):
    spoilt = docker.run("run", "--rm", ENTRYPOINT, "true", check=False)
    assert (spoilt.returncode, spoilt.stdout) == (77, "spoilt by the entry point\n")
    assert docker.run("run", "--rm", USER, "id", "-un").stdout == "nobody\n"
    assert "NVIDIA_VISIBLE_DEVICES=all" in docker.inspect(CUDA)["Config"]["Env"]
    assert docker.inspect(FOREIGN)["Architecture"] != docker.inspect(PLAIN)["Architecture"]
    docker.run("run", "--rm", NO_SHELL)
    assert docker.run("run", "--rm", NO_SHELL, "/bin/sh", check=False).returncode == 127


# ---- who may ----


def test_a_box_may_use_docker_or_not(docker_box):
    ask = "docker version --format '{{.Server.Os}}'"
    one, other = docker_box(), docker_box("gpu2", allowed=False)
    assert one.client.run(one.name, ask).stdout == "linux\n"
    refused = other.client.run(other.name, ask)
    assert refused.returncode != 0
    assert "permission denied" in refused.stderr
    other.account.join("docker")
    assert other.client.run(other.name, ask).stdout == "linux\n"


# ---- GPUs ----


def test_a_container_has_gpus_only_when_they_are_asked_for(docker, docker_gpus_of, tmp_path):
    docker_gpus_of(tmp_path, Device(), Device())
    words = ["run", "--rm", "--mount", f"type=bind,src={tmp_path},dst=/x"]
    assert docker.run(*words, "--gpus", "all", PYTHON, "python3", "-c", COUNT).stdout == "2\n"
    for image in (PYTHON, CUDA):
        without = docker.run(*words, image, "python3", "-c", COUNT, check=False)
        assert "libnvidia-ml.so.1: cannot open" in without.stderr


@pytest.mark.parametrize("asked", ["device=1", "device=UUID", "1"])
def test_some_of_the_gpus_can_be_asked_for(docker, docker_gpus_of, tmp_path, asked):
    gpus = docker_gpus_of(tmp_path, Device(), Device(name="second"))
    asked = asked.replace("UUID", gpus.uuids()[1])
    words = ["run", "--rm", "--mount", f"type=bind,src={tmp_path},dst=/x", "--gpus", asked]
    assert docker.run(*words, PYTHON, "python3", "-c", COUNT).stdout == "1\n"


def test_tests_that_share_a_daemon_have_machines_of_their_own(docker, docker_gpus_of, tmp_path):
    seen = []
    for number in (1, 3):
        folder = tmp_path / f"home{number}"
        folder.mkdir()
        docker_gpus_of(folder, *[Device()] * number)
    for number in (1, 3):
        mount = f"type=bind,src={tmp_path}/home{number},dst=/x"
        done = docker.run("run", "--rm", "--gpus", "all", "--mount", mount, PYTHON, "python3", "-c", COUNT)
        seen.append(done.stdout.strip())
    assert seen == ["1", "3"]


def test_a_script_in_a_container_is_on_the_device_under_its_number_on_the_host(docker, docker_gpus_of, tmp_path):
    gpus = docker_gpus_of(tmp_path, Device())
    script = occupying_inside(0, memory=1 << 30) + "print('there', flush=True)\nimport time\ntime.sleep(600)\n"
    words = ["--user", "4242:4242", "--mount", f"type=bind,src={tmp_path},dst=/x", "--gpus", "all"]
    docker.run("run", "-d", "--name", tmp_path.name, *words, PYTHON, "python3", "-c", script)
    try:
        wait_for(lambda: "there" in docker.run("logs", tmp_path.name).stdout)
        pid = docker.inspect(tmp_path.name)["State"]["Pid"]
        assert Path(f"{gpus.state}.processes").read_text() == f"device 0 process {pid} compute {1 << 30} 50 25 -1 1\n"
    finally:
        docker.run("rm", "-f", tmp_path.name)


def test_a_container_with_one_gpu_sees_what_becomes_of_it_and_is_on_that_one(docker, docker_gpus_of, tmp_path):
    gpus = docker_gpus_of(tmp_path, Device(), Device(utilization=40))
    look = (
        "import ctypes, sys\n"
        "library = ctypes.CDLL('libnvidia-ml.so.1')\n"
        "library.nvmlInit_v2()\n"
        "handle, rates = ctypes.c_void_p(), (ctypes.c_uint * 2)()\n"
        "library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))\n"
        "for line in sys.stdin:\n"
        "    library.nvmlDeviceGetUtilizationRates(handle, rates)\n"
        "    print(rates[0], flush=True)\n"
    )
    script = occupying_inside(0, memory=1 << 30, utilization=5) + look
    words = ["run", "--rm", "-i", "--mount", f"type=bind,src={tmp_path},dst=/x"]
    argv = ["docker", *words, "--gpus", f'"device={gpus.uuids()[1]}"', PYTHON, "python3", "-c", script]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(argv, env={**os.environ, **docker.environment}, **pipes) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write("\n")
        running.stdin.flush()
        assert running.stdout.readline() == "40\n"  # itself it does not see: the number is the host's
        gpus.devices[1].utilization = 81
        gpus.write()
        running.stdin.write("\n")
        running.stdin.flush()
        assert running.stdout.readline() == "81\n"
        running.stdin.close()
    assert Path(f"{gpus.state}.processes").read_text().startswith("device 1 process ")


def test_a_daemon_without_the_hook_cannot_give_gpus(private_daemon):
    daemon = private_daemon(Settings(hook=False))
    refused = daemon.run("run", "--rm", "--gpus", "all", PYTHON, "true", check=False)
    assert refused.returncode == 125
    assert "could not select device driver" in refused.stderr


def test_the_hook_gives_nothing_for_void(tmp_path):
    assert gpu_hook.visible({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}}) == []
    assert gpu_hook.visible({"process": {"env": []}}) == []
    assert gpu_hook.visible({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=0,1"]}}) == ["0", "1"]


# ---- the registry ----


def test_only_a_logged_in_user_can_pull_an_image(docker, private_daemon, image_registry, tmp_path):
    name = image_registry.push(docker, MUSL, tmp_path / "pusher")
    empty = private_daemon(images=False)
    refused = empty.run("--config", str(tmp_path / "nobody"), "pull", name, check=False)
    assert refused.returncode == 1
    assert "no basic auth credentials" in refused.stderr
    image_registry.login(empty, tmp_path / "reader")
    empty.run("--config", str(tmp_path / "reader"), "pull", name)
    assert empty.run("run", "--rm", name, "echo", "pulled").stdout == "pulled\n"
    missing = empty.run("--config", str(tmp_path / "reader"), "pull", image_registry.name_of("none"), check=False)
    assert "manifest unknown" in missing.stderr
    assert PASSWORD not in json.dumps(empty.inspect(name))


# ---- a Python for images without one ----


def test_a_brought_python_runs_in_an_image_without_one(docker, python_downloads, tmp_path):
    uv = Path(sys.executable).with_name("uv")
    environment = {**os.environ, **python_downloads.environment, "UV_PYTHON_INSTALL_BIN": "0"}
    pin = python_downloads.version.rpartition(".")[0]
    brought = tmp_path / "pythons"
    words = [str(uv), "python", "install", "--no-config", "--install-dir", str(brought), pin]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (python,) = brought.glob(f"cpython-{python_downloads.version}-*/bin/python3")
    code = "import ssl, sqlite3, ctypes, lzma, bz2, zlib, hashlib, sys; print(ssl.OPENSSL_VERSION, sys.prefix)"
    mount = f"type=bind,src={brought},dst={brought},readonly"
    shown = docker.run("run", "--rm", "--mount", mount, PLAIN, str(python), "-c", code).stdout
    assert shown.split()[-1] == str(python.parent.parent)


# ---- packages ----


def test_a_container_reaches_the_package_index(docker, tmp_path):
    uv = Path(sys.executable).with_name("uv").resolve()
    words = [*reaching_packages(), "--mount", f"type=bind,src={uv},dst=/uv,readonly"]
    install = "/uv pip install --quiet --system --break-system-packages --no-cache six==1.16.0"
    done = docker.run("run", "--rm", *words, PYTHON, "sh", "-c", f"{install} && python3 -c 'import six; print(six)'")
    assert "six.py" in done.stdout
