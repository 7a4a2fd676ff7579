"""Environments of a box from the command line: prepared there, listed, entered, checked, removed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from integration.remote.benches import FarBench, far_bench  # noqa: F401 - a fixture

MakeBench = Callable[..., FarBench]


@pytest.fixture
def bench(far_bench: MakeBench) -> FarBench:  # noqa: F811
    made = far_bench()
    compute = made.root / "aml_config" / "gpu1.compute"
    compute.write_text(compute.read_text() + "userManagedEnvironment: false\n")
    made.write("aml_config/conda_dependencies.yml", "dependencies:\n  - pip:\n      - six==1.16.0\n")
    return made


def test_an_environment_of_a_box_is_prepared_looked_at_entered_and_removed(bench: FarBench) -> None:
    early = bench.run("experiment", "shell", "-c", "gpu1", "true")
    assert early.code == 242, early.err
    assert "holdfast experiment prepare -c gpu1" in early.err

    prepared = bench.run("experiment", "prepare", "-c", "gpu1")
    assert prepared.code == 0, prepared.err
    assert "is ready: Python " in prepared.err
    (environment,) = json.loads(bench.run("environment", "list", "-t", "gpu1", "-o", "json").out)
    place = str(bench.home / "environments" / environment["id"])
    shown = json.loads(bench.run("environment", "show", environment["id"][:6], "-t", "gpu1", "-o", "json").out)
    assert (shown["path"], shown["installed"]) == (place, ["six==1.16.0"])

    question = ("python", "-c", "import six, sys; print(sys.prefix)")
    for words in (("environment", "shell", "-t", "gpu1", environment["id"]), ("experiment", "shell", "-c", "gpu1")):
        inside = bench.run(*words, *question)
        assert (inside.code, inside.out.strip()) == (0, place), inside.err

    checked = json.loads(bench.run("environment", "check", "-c", "gpu1", "-o", "json").out)
    assert checked["findings"] == []
    assert checked["looked_at"]["environment"] == environment["id"]

    assert bench.run("environment", "remove", environment["id"][:6], "-t", "gpu1").code == 0
    assert json.loads(bench.run("environment", "list", "-t", "gpu1", "-o", "json").out) == []


def test_a_target_that_is_not_there_is_named_with_those_that_are(bench: FarBench) -> None:
    result = bench.run("environment", "list", "-t", "gpu2")
    assert result.code == 240
    assert "gpu1" in result.err
