"""Conda packages in a run: Python and packages from a channel, with packages of the Python package index beside
them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from integration.interpreters import FOUND
from integration.runs.conftest import Bench, bench  # noqa: F401 - a fixture
from kit.conda_channel import Channel, python_module, python_package

pytestmark = pytest.mark.time_limit(300, "solves and installs conda packages")

SPEC = """channels:
  - {channel}
dependencies:
  - python
  - greet={version}
  - pip:
      - six==1.16.0
"""


@pytest.fixture(scope="session")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    folder = tmp_path_factory.mktemp("channel")
    return Channel(folder, python_package(), python_module("greet", "1.0"), python_module("greet", "2.0"))


@pytest.fixture
def conda(bench: Bench, channel: Channel) -> Bench:  # noqa: F811
    bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    bench.write("aml_config/conda_dependencies.yml", SPEC.format(channel=channel.url, version="1.0"))
    bench.write("t.py", "import sys, greet, six\nprint(greet.__version__, six.__version__, sys.prefix)\n")
    return bench


def test_packages_of_a_channel_and_of_the_index_are_in_one_environment(conda: Bench) -> None:
    first = conda.submit("-c", "local", "t.py", timeout=300)
    assert first.code == 0, first.err
    assert first.out.split()[:2] == ["1.0", "1.16.0"]
    event = conda.event(conda.record()["run_id"], "environment")
    assert {"greet==1.0", "six==1.16.0"} <= set(event["packages"])
    assert first.out.split()[2] == event["path"]

    second = conda.submit("-c", "local", "t.py")

    assert second.out == first.out
    assert not conda.event(conda.record()["run_id"], "environment")["built"]


def test_an_unsatisfiable_spec_says_the_solvers_reason_and_the_line(conda: Bench, channel: Channel) -> None:
    conda.write("aml_config/conda_dependencies.yml", SPEC.format(channel=channel.url, version="9.9"))

    result = conda.submit("-c", "local", "t.py", timeout=300)

    assert result.code == 250
    assert "greet" in result.err
    assert "aml_config/conda_dependencies.yml:5" in result.err


def test_the_lock_has_the_archives_with_their_hashes(conda: Bench, channel: Channel) -> None:
    assert conda.submit("-c", "local", "t.py", timeout=300).code == 0
    run = conda.root / ".holdfast" / "runs" / conda.record()["run_id"]

    lock = json.loads((run / "environment.json").read_text())

    packages = {each["name"]: each for each in lock["conda"]}
    assert packages["greet"]["url"].startswith(channel.url)
    assert len(packages["greet"]["sha256"]) == 64
    assert "six==1.16.0" in lock["requirements"]


def test_a_python_that_neither_the_machine_nor_uv_has_is_taken_from_a_channel(
    bench: Bench,  # noqa: F811
    tmp_path: Path,
) -> None:
    folders = [os.path.realpath(each) for each in os.environ["PATH"].split(os.pathsep)]
    foreign = [path for path in FOUND.values() if os.path.realpath(path.parent) not in folders]
    if not foreign:
        pytest.skip("all Pythons of this machine are on its path")
    channel = Channel(tmp_path / "channel", python_package(foreign[0]))
    version = foreign[0].name[len("python") :]
    bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    spec = f"channels:\n  - {channel.url}\ndependencies:\n  - python={version}\n  - pip:\n      - six==1.16.0\n"
    bench.write("aml_config/conda_dependencies.yml", spec)
    bench.write("t.py", "import sys, six\nprint('%d.%d' % sys.version_info[:2], six.__version__)\n")

    nothing = {"UV_PYTHON_DOWNLOADS_JSON_URL": (tmp_path / "none.json").as_uri()}
    result = bench.submit("-c", "local", "t.py", env=nothing, timeout=300)

    assert (result.code, result.out) == (0, f"{version} 1.16.0\n"), result.err
    assert "it is taken from the conda channels" in result.err
