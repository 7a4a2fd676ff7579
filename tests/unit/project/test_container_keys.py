from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project.compute import ComputeTarget, read_compute, render_compute
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.container_keys import (
    VolumeLine,
    cpus_mistake,
    image_mistake,
    memory_mistake,
    network_mistake,
    parse_volume,
    shm_mistake,
)
from holdfast.project.problems import Mistake, Problem

DIGEST = "sha256:" + "0123456789abcdef" * 4


def read(tmp_path: Path, text: str) -> tuple[ComputeTarget | None, list[Problem]]:
    (tmp_path / "aml_config").mkdir(exist_ok=True)
    (tmp_path / "aml_config" / "x.compute").write_text(text, encoding="utf-8")
    return read_compute(ConfigurationFolders(tmp_path), "x")


GOOD_IMAGES = [
    *("ubuntu", "ubuntu:24.04", "microsoft/mmlspark:plus-gpu-0.9.9", "nvcr.io/nvidia/pytorch:25.01-py3", DIGEST),
    *("localhost:5000/a__b/c-d.e:V1", "[::1]:5000/x", f"python@{DIGEST}", f"python:3.12@{DIGEST}"),
]
BAD_IMAGES = [
    *("-v/:/host", "--privileged", "a b", "a,b", "a'b", 'a"b', "$(id)", "a:b:c", "/x", "x/", "a//b", "x@sha256:12", "é")
]


@pytest.mark.parametrize(("image", "is_one"), [(image, image in GOOD_IMAGES) for image in (*GOOD_IMAGES, *BAD_IMAGES)])
def test_an_image_is_what_docker_takes_for_one_and_for_nothing_else(image, is_one):
    mistake = image_mistake(image)
    assert (mistake is None) is is_one
    assert mistake is None or f"`{image}`" in mistake.message


def test_an_image_that_is_almost_right_is_told_how_to_be():
    assert image_mistake("Ubuntu:24.04") == Mistake(
        "`Ubuntu:24.04` is not the name of an image: those have small letters only",
        "Write `ubuntu:24.04`, if that is meant.",
    )
    assert image_mistake("docker://ubuntu") == Mistake("`docker://ubuntu` is a URL", "Write the image alone: ubuntu")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("/data:/data", VolumeLine("/data", "/data", False)),
        ("~/sets/a b:/data/../x/", VolumeLine("~/sets/a b", "/x", False)),
        ("/data:/data:ro", VolumeLine("/data", "/data", False)),
        ("/data,readonly:/a,b:rw", VolumeLine("/data,readonly", "/a,b", True)),
        ("/d:/azureml-shared", VolumeLine("/d", "/azureml-shared", False)),
    ],
)
def test_a_volume_is_read_only_unless_it_says_otherwise(written, expected):
    assert parse_volume(written) == expected


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("/data", "is not `source:target`"),
        ("/a:/b:/c", "is not `source:target`"),
        ("/a:/b:rx", "is not `source:target`"),
        ("/a:/b:ro:z", "is not `source:target`"),
        ("data:/data", "`data` is no path on the machine"),
        ("./data:/data", "`./data` is no path on the machine"),
        ("$HOME/data:/data", "`$HOME/data` is no path on the machine"),
        ("~you/data:/data", "`~you/data` is no path on the machine"),
        (":/data", "`` is no path on the machine"),
        ("/data:data", "`data` is no path in the container"),
        ("/data:/", "`/` cannot be mounted over"),
        ("/data://azureml-share/", "cannot be mounted over"),
        ("/data:/etc/passwd", "cannot be mounted over"),
        ("/data:/x/../proc/1", "cannot be mounted over"),
        ("/a\n:/b", "holds a line break"),
    ],
)
def test_a_volume_that_cannot_be_is_told_why(written, said):
    mistake = parse_volume(written)
    assert isinstance(mistake, Mistake) and said in mistake.message and mistake.remedy


def test_a_volume_of_dockers_own_is_told_where_it_goes():
    mistake = parse_volume("cache:/var/cache/models")
    assert isinstance(mistake, Mistake)
    assert "--mount=type=volume,source=cache,target=/var/cache/models" in mistake.remedy


@pytest.mark.parametrize("size", ["8g", "512m", "1.5G", "16GiB", "16 gb", "6291456", "2t"])
def test_sizes_are_read_as_docker_reads_them(size):
    assert memory_mistake(size) is None and shm_mistake(size) is None


@pytest.mark.parametrize("size", ["-1", "8 gigabytes", "8g,16g", "0x10", "g", "--rm", "1e9", "half"])
def test_what_is_no_size_is_told_so(size):
    mistake = memory_mistake(size)
    assert mistake is not None
    assert f"`{size}`" in mistake.message and "`memory: 8g`" in mistake.remedy


def test_a_size_without_its_unit_is_not_taken_for_bytes():
    assert memory_mistake("16") == Mistake("`16` is a number of bytes", "Write the unit: `memory: 16g`")
    assert memory_mistake("5m") == Mistake("`5m` is too small for a container", "Write `memory: 6m` or more.")
    assert shm_mistake("64") == Mistake("`64` is a number of bytes", "Write the unit: `shmSize: 64g`")


@pytest.mark.parametrize(
    ("mistake_in", "right", "wrong"),
    [
        (cpus_mistake, ["4", "0.5"], ["0", "all", "-1"]),
        (network_mistake, ["host", "none", "my_net.1", "container:web"], ["no", "-v", "a b", "host,x"]),
    ],
    ids=["processors are a number", "a network is a name"],
)
def test_other_values_have_their_form(mistake_in, right, wrong):
    assert [each for each in (*right, *wrong) if mistake_in(each) is None] == right


def test_every_key_is_taken_as_written(tmp_path):
    target, problems = read(
        tmp_path,
        "type: docker\nbaseDockerImage: python:3.12\nnvidiaDocker: false\nvolumes:\n  - /data:/data\n  - ~/x:/x:rw\n"
        "shmSize: 16g\nmemory: 8g\ncpus: 2\nnetwork: bridge\n"
        "dockerArguments:\n  - --ulimit memlock=-1\n  - --ipc=host\n",
    )
    assert problems == []
    assert target == ComputeTarget(
        "x",
        "docker",
        base_docker_image="python:3.12",
        nvidia_docker=False,
        file="aml_config/x.compute",
        volumes=("/data:/data", "~/x:/x:rw"),
        shm_size="16g",
        memory="8g",
        cpus="2",
        network="bridge",
        docker_arguments=("--ulimit", "memlock=-1", "--ipc=host"),
    )
    assert read(tmp_path, render_compute(target)) == (target, [])


@pytest.mark.parametrize(("line", "value"), [("", None), ("nvidiaDocker:\n", None), ("nvidiaDocker: no\n", False)])
def test_no_word_about_gpus_is_not_a_refusal_of_gpus(tmp_path, line, value):
    target, _ = read(tmp_path, f"type: docker\n{line}")
    assert target is not None and target.nvidia_docker is value


def test_arguments_may_stand_in_one_line(tmp_path):
    target, _ = read(tmp_path, "type: docker\ndockerArguments: --ipc=host --label 'a=b c'\n")
    assert target is not None and target.docker_arguments == ("--ipc=host", "--label", "a=b c")
    assert read(tmp_path, render_compute(target))[0] == target


def test_a_target_without_a_container_is_told_that_the_keys_mean_nothing(tmp_path):
    target, problems = read(tmp_path, "type: local\nvolumes: [x]\nmemory: lots\ndockerArguments: --rm\n")
    assert target is not None and not target.docker_arguments
    assert [(each.key, each.severity) for each in problems] == [
        ("volumes", "warning"),
        ("memory", "warning"),
        ("dockerArguments", "warning"),
    ]


def test_two_volumes_cannot_be_at_one_place(tmp_path):
    _, problems = read(tmp_path, "type: docker\nvolumes:\n  - /a:/data\n  - /b:/data/\n")
    assert [str(each) for each in problems] == [
        "aml_config/x.compute:4: volumes: `/data` is named twice. Remove one of the two."
    ]
