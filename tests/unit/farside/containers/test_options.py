"""The arguments of `docker run`."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.farside.containers import docker_options
from holdfast.farside.containers.daemon import Daemon
from holdfast.farside.containers.docker_options import Account, Around, Volume
from holdfast.farside.gpu.devices import GpuDevice
from unit.farside.containers.recorded import daemon

ME = Account("me", 1000, 1001, (1001, 27, 999))
PLAN: dict[str, Any] = {
    "program": "docker",
    "image": "ubuntu:24.04",
    "is_exact": False,
    "known_as": "ubuntu:24.04",
    "gpus": None,
    "options": ["--network", "host", "--memory", "4g"],
    "shm": None,
    "volumes": [{"source": "/data", "target": "/data", "is_writable": False}],
    "share": "/azureml-share/",
    "name": "holdfast-r_1",
    "labels": {"holdfast.run": "r_1", "holdfast.project": "p"},
    "python": None,
    "file": "aml_config/box.compute",
}


def context(engine: Daemon, way: str = "") -> Around:
    return Around(
        daemon=engine,
        account=ME,
        image="sha256:abc",
        mounts=(Volume("/home/me/.holdfast/runs/p/r", "/home/me/.holdfast/runs/p/r", True),),
        variables=(("HOME", "/home/me/.holdfast/container-home"),),
        labels=(("holdfast.home", "/home/me/.holdfast"),),
        shm="1g",
        way=way,
        grace=10.0,
        directory="/home/me/.holdfast/runs/p/r/work",
        entry=("/usr/bin/python3", "-I", "main.py", "inside", "/x"),
    )


def test_the_whole_line_can_be_read():
    assert docker_options.run_words(docker_options.parse(PLAN), context(daemon())) == [
        *("run", "--shm-size", "1g", "--log-driver", "json-file", "--log-opt", "max-size=1m"),
        *("--no-healthcheck", "--stop-signal", "SIGTERM", "--stop-timeout", "11"),
        *("-e", "HOME=/home/me/.holdfast/container-home"),
        *("--network", "host", "--memory", "4g"),
        *("-e", "NVIDIA_VISIBLE_DEVICES=void"),
        *("-d", "--rm=false", "--name", "holdfast-r_1"),
        *("--label", "holdfast.run=r_1", "--label", "holdfast.project=p"),
        *("--label", "holdfast.home=/home/me/.holdfast"),
        *("--user", "1000:1001", "--group-add", "27", "--group-add", "999"),
        *("--mount", "type=bind,source=/home/me/.holdfast/runs/p/r,target=/home/me/.holdfast/runs/p/r"),
        *("--workdir", "/home/me/.holdfast/runs/p/r/work", "--entrypoint", "/usr/bin/python3", "sha256:abc"),
        *("-I", "main.py", "inside", "/x"),
    ]


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("name", "groups", "words"),
    [
        ("rootless", ME.groups, ["--user", "0:0"]),
        ("podman-rootless", ME.groups, ["--userns=keep-id", "--user", "1000:1001", "--group-add", "keep-groups"]),
        ("podman-rootless", (1001,), ["--userns=keep-id", "--user", "1000:1001"]),
        (
            "userns-remap",
            ME.groups,
            ["--userns=host", "--user", "1000:1001", "--group-add", "27", "--group-add", "999"],
        ),
    ],
)
def test_files_are_the_users_however_the_engine_maps_ids(name, groups, words):
    assert docker_options.identity(daemon(name), ME.uid, ME.gid, groups) == words


@pytest.mark.recorded
def test_a_script_of_a_rootless_docker_is_root_for_itself_alone():
    assert docker_options.inner_uid(daemon("rootless"), 1000) == 0
    assert docker_options.inner_uid(daemon("podman-rootless"), 1000) == 1000
    assert docker_options.inner_uid(daemon(), 1000) == 1000


@pytest.mark.recorded
def test_selinux_labels_of_a_home_are_left_as_they_are():
    assert docker_options.security(daemon("selinux")) == ["--security-opt", "label=disable"]
    assert docker_options.security(daemon()) == []


LEASED = [GpuDevice(0, "GPU-a", ""), GpuDevice(2, "MIG-b", "", instance=1)]
NONE = ["-e", "NVIDIA_VISIBLE_DEVICES=void"]  # else an image may ask the usual runtime for the others


@pytest.mark.parametrize(
    ("way", "given", "words"),
    [
        ("hook", None, ["--gpus", "all"]),
        ("hook", LEASED, ["--gpus", '"device=GPU-a,MIG-b"']),  # read as a line of CSV
        ("hook", LEASED[:1], ["--gpus", "device=GPU-a"]),
        ("cdi", None, ["--device", "nvidia.com/gpu=all", *NONE]),
        ("cdi", LEASED, ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=2:1", *NONE]),
        ("runtime", None, ["--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=all"]),
        ("runtime", LEASED, ["--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=GPU-a,MIG-b"]),
        ("", None, NONE),
        *((way, [], NONE) for way in ("hook", "cdi", "runtime", "")),
    ],
)
def test_a_container_gets_the_leased_gpus_and_no_others_in_each_way_of_giving_them(way, given, words):
    assert docker_options.gpus(way, given) == words


@pytest.mark.parametrize(
    ("way", "gpus", "visible"),
    [
        ("runtime", (GpuDevice(0, "GPU-a", ""),), "GPU-a"),
        ("runtime", None, "all"),
        ("cdi", (GpuDevice(0, "GPU-a", ""),), "void"),
        ("cdi", (), "void"),
        ("", None, "void"),
    ],
)
def test_nothing_that_a_plan_says_is_more_than_the_lease(way, gpus, visible):
    """Docker takes the last value of a variable, and the last runtime."""
    asking = "NVIDIA_VISIBLE_DEVICES=all"
    plan = {**PLAN, "options": ["-e", asking, "--runtime", "other"]}
    given = context(daemon(), way)._replace(gpus=gpus, variables=(("NVIDIA_VISIBLE_DEVICES", "all"),))
    words = docker_options.run_words(docker_options.parse(plan), given)
    values = [word.partition("=")[2] for word in words if word.startswith("NVIDIA_VISIBLE_DEVICES=")]
    assert values == ["all", "all", visible]
    runtimes = [words[place + 1] for place, word in enumerate(words) if word == "--runtime"]
    assert runtimes == (["other", "nvidia"] if way == "runtime" else ["other"])


def test_the_parts_of_the_driver_are_named_where_the_image_does_not():
    assert docker_options.capabilities("hook", {}) == [("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")]
    assert docker_options.capabilities("hook", {"NVIDIA_DRIVER_CAPABILITIES": "all"}) == []
    assert docker_options.capabilities("", {}) == []


@pytest.mark.parametrize(
    ("environment", "is_for_gpus"),
    [
        ({"CUDA_VERSION": "12.2.0"}, True),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, True),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, False),
        ({"PATH": "/bin"}, False),
    ],
)
def test_an_image_for_gpus_is_known_by_what_it_says(environment, is_for_gpus):
    assert docker_options.is_for_gpus(environment) is is_for_gpus


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), min_size=1))
def test_a_path_of_any_letters_is_mounted_as_it_is(path):
    _, word = docker_options.mount(path, "/target", writable=False)
    (fields,) = csv.reader([word], strict=True) if "\n" not in word else [next(csv.reader(word.splitlines(True)))]
    assert fields == ["type=bind", f"source={path}", "target=/target", "readonly"]


@pytest.mark.parametrize(
    ("words", "limit"),
    [([], ""), (["--memory", "4g"], "4g"), (["--memory", "4g", "-m", "1g"], "1g"), (["--memory=64m"], "64m")],
)
def test_the_memory_limit_is_the_last_word_about_it(words, limit):
    assert docker_options.memory_limit(words) == limit


def test_the_user_has_an_account_and_the_images_own_ones_stay():
    image = "root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\nme:x:5:5::/:/bin/false\n"
    lines = docker_options.passwd_text(image, ME, 1000, "/h").splitlines()
    assert lines[0] == "me:x:1000:1001:me:/h:/bin/sh"
    assert lines[1:] == ["root:x:0:0:root:/root:/bin/bash", "ubuntu:x:1000:1000::/home/ubuntu:/bin/bash"]
    assert docker_options.group_text("root:x:0:\nstaff:x:50:\n", ME, 1001, "staff") == "staff:x:1001:me\nroot:x:0:\n"


def test_shared_memory_is_half_of_the_machines_and_never_dockers_own_default():
    assert docker_options.default_shm(8 << 30) == str(4 << 30)
    assert docker_options.default_shm(0) == str(64 << 20)
