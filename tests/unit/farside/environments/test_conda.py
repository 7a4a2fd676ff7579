"""Requests for the worker that installs conda packages, and what it says."""

from __future__ import annotations

import json

import pytest

from holdfast.farside.environments import conda_build
from holdfast.farside.environments.conda_build import CondaDone, CondaProblem, CondaProgress
from holdfast.farside.environments.conda_channels import Channels

CHANNELS = Channels(
    groups=(("conda-forge", ("conda-forge",)), ("https://h/c", ("https://h/c",))),
    secret_urls={"https://h/c": "https://h/t/tk/c"},
    credentials={"h": ["ada", "word"]},
    priority="strict",
    network={"verify": False},
)
PLATFORM = "linux-x86_64-glibc2.36"


def package(name: str, version: str = "1.0", depends: tuple[str, ...] = (), noarch: str = "") -> dict[str, object]:
    return {"name": name, "version": version, "depends": list(depends), "noarch": noarch}


def test_a_solve_is_asked_for_the_targets_system_and_driver():
    specs, network = ["https://h/t/tk/c::x", "numpy"], {"verify": False, "credentials": CHANNELS.credentials}

    def request(cuda: str) -> object:
        locked = [{**package("x"), "build": "0", "subdir": "noarch", "url": "file:///evil"}]
        return json.loads(conda_build.solve_request(specs, CHANNELS, PLATFORM, cuda, locked, "/cache"))

    for cuda in ("12.4", ""):
        assert request(cuda) == {
            "do": "solve",
            "specs": ["https://h/c::x", "numpy"],
            "channels": [{"name": name, "urls": list(urls)} for name, urls in CHANNELS.groups],
            "platform": "linux-64",
            "virtual": {"glibc": "2.36", "cuda": cuda or None},
            "preferred": [["x", "1.0", "0", "noarch"]],
            "priority": "strict",
            "cache": "/cache",
            "network": {**network, "secret_urls": CHANNELS.secret_urls},
        }


def test_an_installation_names_the_packages_and_the_place():
    prefix = "/home/me/.holdfast/environments/x"

    request = json.loads(conda_build.install_request([package("x")], prefix, CHANNELS, PLATFORM, "/cache"))

    assert (request["do"], request["packages"], request["platform"]) == ("install", [package("x")], "linux-64")
    assert (request["prefix"], request["thorough"]) == (prefix, False)


@pytest.mark.parametrize(
    ("platform", "name"),
    [(PLATFORM, "linux-64"), ("linux-aarch64-glibc2.17", "linux-aarch64"), ("darwin-arm64-musl", "osx-arm64")],
)
def test_conda_has_its_own_names_for_platforms(platform, name):
    assert conda_build.subdir(platform) == name


@pytest.mark.parametrize("platform", ["linux-x86_64-musl", "plan9-mips-glibc2.2"])
def test_a_platform_without_conda_packages_is_refused(platform):
    with pytest.raises(ValueError, match=f"there are no conda packages for {platform}"):
        conda_build.subdir(platform)


def test_progress_is_a_sentence_for_people():
    line = '{"phase": "download", "done": 3, "of": 9, "bytes": 1500000, "total": 30000000}'

    progress = conda_build.read_line(line)

    assert progress == CondaProgress("download", 3, 9, 1500000, 30000000)
    assert progress.text == "getting conda packages, 3 of 9, 1.5 of 30.0 MB"
    assert CondaProgress("link", 1, 9, 0, 0).text == "installing conda packages, 1 of 9"
    assert CondaProgress("solve", 0, 2, 0, 0).text == "choosing conda packages"


def test_the_last_line_is_a_result_or_an_error_without_secrets():
    error = {"kind": "strange", "message": "no https://ada:word@h/t/tk/c", "spec": "x"}

    assert conda_build.read_line(json.dumps({"ok": {"packages": [package("x")]}})) == CondaDone((package("x"),))
    assert conda_build.read_line(json.dumps({"error": error})) == CondaProblem("other", "no https://h/c", "x")


@pytest.mark.parametrize(
    "line", ["", "Hello from a package", "[1]", "3", '"ok"', '{"a": 1}', '{"ok": 1}', '{"error": {}}']
)
def test_what_others_print_is_no_answer(line):
    assert conda_build.read_line(line) is None


def test_a_worker_that_dies_is_a_problem_with_its_last_words():
    said = 'a\n{"phase": "solve", "done": 0, "of": 0, "bytes": 0, "total": 0}\nSegmentation fault\n\n'

    assert conda_build.ended_early(-9, "").message == "the installer of conda packages was ended by signal 9"
    assert conda_build.ended_early(1, said) == CondaProblem(
        "other", "the installer of conda packages ended with exit code 1: Segmentation fault", ""
    )


def test_python_packages_have_their_names_of_the_index():
    packages = [
        package("python", "3.11.7", ("libffi >=3",)),
        package("python_abi", "3.11", ("python 3.11.*",)),
        package("six", "1.16.0", ("python",), "python"),
        package("pytorch", "2.1.0", ("python >=3.11,<3.12.0a0", "libcblas")),
        package("matplotlib", "3.8.0", ("matplotlib-base >=3.8.0", "python")),
        package("matplotlib-base", "3.8.0", ("python_abi 3.11.* *_cp311",)),
        package("tzdata", "2024a", (), "generic"),
        package("odd", "1.0_custom", ("python",)),
        package("libblas", "3.9.0", ("libopenblas",)),
    ]

    assert conda_build.python_packages(packages) == ["matplotlib==3.8.0", "six==1.16.0", "torch==2.1.0"]


def test_the_worker_is_a_program_beside_this_module():
    python, option, path = conda_build.worker_command("/tools/bin/python")

    assert (python, option) == ("/tools/bin/python", "-I")
    with open(path) as source:
        assert "py-rattler" in source.read()


def test_packages_of_another_platform_are_not_preferred():
    folders = ("noarch", "linux-64", "linux-aarch64", "win-64")
    locked = [{"name": each, "version": "1", "build": "0", "subdir": each} for each in folders]

    request = json.loads(conda_build.solve_request(["x"], CHANNELS, PLATFORM, "", locked, "/cache"))

    assert [each[0] for each in request["preferred"]] == ["noarch", "linux-64"]
