"""Conda packages in a run: Python and packages out of a channel, those of the Python package index beside them."""

from __future__ import annotations

import json

import pytest
from runs.conftest import Bench, bench  # noqa: F401 - a fixture

from kit.conda_channel import Channel, python_module, python_package

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
