"""Conda packages for real: solved and installed by the worker, from channels that are made here."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments import conda_build
from holdfast.farside.environments.conda_build import CondaDone, CondaProblem, CondaProgress
from holdfast.farside.environments.conda_channels import read_settings
from integration.environments.conda_benches import MACHINE, UV, Bench, conda_bench  # noqa: F401 - a fixture
from kit.conda_channel import PLACEHOLDER, Channel, Content, Package, archive, python_module, python_package
from kit.waiting import wait_for

SCRIPT = b"#!/bin/sh\necho a script prints\necho '{' \necho linked > $PREFIX/linked\n"


@pytest.fixture(scope="session")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    return Channel(
        tmp_path_factory.mktemp("channel"),
        python_package(),
        python_module("greet", "1.0"),
        python_module("greet", "2.0", ("base-lib >=2",)),
        Package("base-lib", "1.0"),
        Package(
            "base-lib",
            "2.0",
            noarch="",
            files={
                "etc/base.txt": f"at {PLACEHOLDER}\n",
                "lib/base.bin": Content(b"\x7fELF\0" + PLACEHOLDER.encode() + b"/lib\0end", "binary"),
            },
        ),
        Package("gpu-lib", "1.0", "cpu_0", noarch=""),
        Package("gpu-lib", "1.0", "cuda_1", ("__cuda >=12",), noarch=""),
        Package("new-lib", depends=("__glibc >=2.99",)),
        Package("scripted", files={"bin/.scripted-post-link.sh": Content(SCRIPT, executable=True)}, noarch=""),
        Package("broken", files={"bin/.broken-post-link.sh": Content(b"exit 3\n", executable=True)}, noarch=""),
    )


def names(packages: tuple[Any, ...]) -> list[str]:
    return [f"{each['name']}={each['version']}={each['build']}" for each in packages]


def said(*argv: str | Path) -> str:
    return subprocess.run([str(each) for each in argv], capture_output=True, text=True, check=True).stdout


def test_an_environment_is_solved_installed_and_runs(bench, channel):
    packages = bench.packages([channel.url], "greet", "python")
    done, progress = bench.install(packages, "p")

    assert [name.split("=")[0] for name in names(packages)] == ["base-lib", "greet", "python"]
    assert conda_build.python_packages(packages) == ["greet==2.0"]
    assert done == CondaDone(packages)
    assert (progress[0].phase, progress[-1]) == ("download", CondaProgress("link", 3, 3, 0, 0))
    prefix = bench.folder / "p"
    assert said(prefix / "bin/greet") == "2.0\n"
    assert said(prefix / "bin/python", "-c", "import sys, ssl, sqlite3; print(sys.prefix)") == f"{prefix}\n"
    assert (prefix / "etc/base.txt").read_text() == f"at {prefix}\n"
    assert (prefix / "lib/base.bin").read_bytes().startswith(b"\x7fELF\0" + str(prefix).encode() + b"/lib\0")


def test_uv_installs_on_top_and_sees_what_conda_installed(bench, channel):
    bench.install(bench.packages([channel.url], "greet", "python"), "p")
    python = bench.folder / "p/bin/python"

    subprocess.run([UV, "pip", "install", "-q", "--python", python, "six==1.16.0", "greet"], env=MACHINE, check=True)

    assert said(python, "-c", "import six, greet; print(six.__version__, greet.__version__)") == "1.16.0 2.0\n"


def test_the_build_fits_the_targets_driver_and_c_library(bench, channel):
    assert names(bench.packages([channel.url], "gpu-lib")) == ["gpu-lib=1.0=cpu_0"]
    assert names(bench.packages([channel.url], "gpu-lib", cuda="12.4")) == ["gpu-lib=1.0=cuda_1"]
    assert names(bench.packages([channel.url], "gpu-lib", cuda="11.8")) == ["gpu-lib=1.0=cpu_0"]
    refused = bench.solve([channel.url], "new-lib")
    assert isinstance(refused, CondaProblem)
    assert (refused.kind, refused.spec) == ("unsatisfiable", "new-lib")
    assert "__glibc >=2.99" in refused.message


def test_locked_packages_are_preferred_where_they_fit(bench, channel):
    locked = bench.packages([channel.url], "greet=1.0", "python")

    again = bench.solve([channel.url], "greet", "python", locked=locked)
    newer = bench.solve([channel.url], "greet>=2", "python", locked=locked)

    assert again == CondaDone(locked)
    assert "greet=2.0=py_0" in names(newer.packages)


@pytest.mark.parametrize(
    ("spec", "build"),
    [
        ("greet=1", "1.0"),
        ("greet==1.0", "1.0"),
        ("greet=2.0=py_0", "2.0"),
        ("greet >=1,<2", "1.0"),
        ("greet=*=py*", "2.0"),
    ],
)
def test_specs_are_written_as_conda_users_write_them(bench, channel, spec, build):
    assert f"greet={build}=py_0" in names(bench.packages([channel.url], spec))


@pytest.mark.parametrize(
    ("specs", "spec", "word"),
    [
        (("base-lib", "nosuch>=1"), "nosuch>=1", "No candidates were found for nosuch >=1"),
        (("base-lib <2", "greet=2"), "greet=2", "base-lib >=2"),
        (("greet", "python=2.7"), "python=2.7", "No candidates were found for python 2.7.*"),
    ],
)
def test_an_unsatisfiable_spec_has_the_solvers_reason(bench, channel, specs, spec, word):
    problem = bench.solve([channel.url], *specs)

    assert isinstance(problem, CondaProblem)
    assert (problem.kind, problem.spec) == ("unsatisfiable", spec)
    assert word in problem.message


def test_a_spec_that_is_none_is_named(bench, channel):
    problem = bench.solve([channel.url], "greet", "greet >=>")

    assert (problem.kind, problem.spec) == ("other", "greet >=>")
    assert problem.message.startswith("`greet >=>` is not a package spec: ")


def test_a_channel_that_is_not_there_is_named(bench, tmp_path, channel):
    problem = bench.solve([channel.url, f"file://{tmp_path}/nowhere"], "greet")

    assert problem.kind == "channel"
    assert problem.message.startswith(f"channel `file://{tmp_path}/nowhere`: could not find subdir 'noarch'")


def test_a_channel_that_cannot_be_reached_is_a_problem_of_the_network(bench):
    with socket.socket() as taken:  # and does not listen
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        problem = bench.solve([f"http://127.0.0.1:{port}/c"], "greet")

    assert problem.kind == "network"
    assert f"127.0.0.1:{port} cannot be reached" in problem.message


def test_names_lead_where_the_hosts_settings_say(tool, tmp_path, channel):
    other = Channel(tmp_path / "team", Package("greet", "9.0"))
    (tmp_path / ".condarc").write_text(
        f"channel_alias: {channel.folder.parent.as_uri()}\n"
        f"custom_channels:\n  team: {tmp_path.as_uri()}\n"
        f"default_channels:\n  - {channel.url}\n  - {other.url}\n"
    )
    bench = Bench(tool, tmp_path, read_settings({"HOME": str(tmp_path)}, str(tmp_path)))

    assert "greet=2.0=py_0" in names(bench.packages([channel.folder.name], "greet"))
    assert names(bench.packages(["team", channel.folder.name], "greet")) == ["greet=9.0=0"]
    assert "greet=2.0=py_0" in names(bench.packages(["team", channel.folder.name], f"{channel.folder.name}::greet"))
    assert names(bench.packages([channel.folder.name], "team::greet")) == ["greet=9.0=0"]
    assert names(bench.packages([], "defaults::greet")) == ["greet=9.0=0"]


def test_a_damaged_archive_is_not_installed(bench, tmp_path):
    ours = Channel(tmp_path / "c", Package("x", files={"x.txt": "right"}))
    packages = bench.packages([ours.url], "x")
    ours.archive("x").write_bytes(archive(Package("x", files={"x.txt": "wrong"})))

    problem, _ = bench.install(packages, "p")

    assert problem.kind == "channel"
    assert "is damaged or another: its sha256 is" in problem.message
    assert not (bench.folder / "p/x.txt").exists()


def test_packages_of_one_name_from_two_channels_are_not_mixed_up(bench, tmp_path):
    channels = [Channel(tmp_path / each, Package("x", files={"x.txt": each})) for each in ("one", "two")]

    for channel in (*channels, channels[0]):
        prefix = f"p{len(list(tmp_path.iterdir()))}-{channel.folder.name}"
        bench.install(bench.packages([channel.url], "x"), prefix)
        assert (tmp_path / prefix / "x.txt").read_text() == channel.folder.name


def test_a_cache_that_was_changed_is_repaired_when_asked_to_look(bench, tmp_path):
    ours = Channel(tmp_path / "c", Package("x", files={"x.txt": "right", "y.txt": "right"}))
    packages = bench.packages([ours.url], "x")
    bench.install(packages, "p")
    (changed,) = bench.cache.rglob("x.txt")
    (missing,) = bench.cache.rglob("y.txt")
    missing.unlink()
    bench.install(packages, "p2")
    assert (tmp_path / "p2/y.txt").read_text() == "right"

    changed = next(bench.cache.rglob("x.txt"))
    shutil.rmtree(tmp_path / "p2")
    changed.write_text("wrong")
    bench.install(packages, "p3", thorough=True)

    assert (tmp_path / "p3/x.txt").read_text() == "right"


def test_a_worker_that_is_killed_leaves_a_cache_that_works(bench, channel):
    packages = bench.packages([channel.url], "greet", "python")
    process = bench.start(bench.request(packages, "killed"))
    wait_for(lambda: list(bench.cache.glob("packages/.python-*")), what="the archive is being unpacked")
    process.kill()

    problem, _ = bench.finish(process)

    assert isinstance(problem, CondaProblem) and (problem.kind, problem.spec) == ("other", "")
    assert problem.message.endswith("signal 9")
    assert isinstance(bench.install(packages, "p")[0], CondaDone)
    assert said(bench.folder / "p/bin/greet") == "2.0\n"


def test_a_prefix_that_has_packages_is_never_gone_on_with(bench, channel):
    packages = bench.packages([channel.url], "base-lib")
    bench.install(packages, "p")

    problem, _ = bench.install(packages, "p")

    assert problem == CondaProblem("storage", f"`{bench.folder}/p` has packages already", "")


def test_two_installations_share_a_cache_at_the_same_time(bench, channel):
    packages = bench.packages([channel.url], "greet", "python")

    running = [bench.start(bench.request(packages, name)) for name in ("one", "two", "three")]

    assert [bench.finish(each)[0] for each in running] == [CondaDone(packages)] * 3
    assert [said(bench.folder / name / "bin/greet") for name in ("one", "two", "three")] == ["2.0\n"] * 3
    inodes = {(bench.folder / name / "bin/python").stat().st_ino for name in ("one", "two", "three")}
    assert len(inodes) == 1  # hard links: three environments cost the disk one


def test_a_folder_that_cannot_be_written_is_a_problem_of_storage(bench, channel):
    bench.cache.write_text("a file in the way")

    problem = bench.solve([channel.url], "greet")

    assert problem.kind == "storage"


def test_scripts_of_packages_run_and_their_output_does_not_interfere(bench, channel):
    done, _ = bench.install(bench.packages([channel.url], "scripted"), "p")

    assert isinstance(done, CondaDone)
    assert (bench.folder / "p/linked").read_text() == "linked\n"
    problem, _ = bench.install(bench.packages([channel.url], "broken"), "p2")
    assert problem == CondaProblem("other", "the script of `broken` that runs after its installation failed", "")
