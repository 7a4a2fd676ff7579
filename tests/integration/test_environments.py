"""Managed environments on this machine: built once with uv, reused, failures have the installer's own reason."""

from __future__ import annotations

import concurrent.futures
import json
from pathlib import Path

import pytest

from integration.runs.conftest import Bench, bench  # noqa: F401 - a fixture
from kit.waiting import wait_for

pytestmark = pytest.mark.time_limit(300, "installs scikit-learn")

COMPUTE = "type: local\nuserManagedEnvironment: false\n"
RUNCONFIG = "Target: local\nFramework: Python\n"


def _conda(*packages: str) -> str:
    return "dependencies:\n  - pip:\n" + "".join(f"      - {package}\n" for package in packages)


@pytest.fixture
def managed(bench: Bench) -> Bench:  # noqa: F811
    bench.write("aml_config/local.compute", COMPUTE)
    bench.write("aml_config/local.runconfig", RUNCONFIG)
    bench.write("aml_config/conda_dependencies.yml", _conda("six==1.16.0"))
    bench.write(
        "t.py", "import os, shutil, sys, six\nprint(six.__version__, shutil.which('python') == sys.executable)\n"
    )
    return bench


def test_an_environment_is_built_once_and_reused(managed):
    first = managed.submit("-c", "local", "t.py")
    assert (first.code, first.out) == (0, "1.16.0 True\n"), first.err
    assert "Preparing the environment" in first.err
    built = managed.event(managed.record()["run_id"], "environment")
    second = managed.submit("-c", "local", "t.py")
    assert second.out == first.out
    reused = managed.event(managed.record()["run_id"], "environment")
    assert (built["built"], reused["built"]) == (True, False)
    assert built["id"] == reused["id"]
    assert built["packages"] == ["six==1.16.0"]


@pytest.mark.soak
def test_eight_runs_that_want_one_environment_build_it_once(managed):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: managed.submit("-c", "local", "t.py", timeout=120), range(8)))
    assert [result.code for result in results] == [0] * 8, results[0].err
    runs = json.loads(managed.run("history", "list", "-o", "json").out)
    built = [managed.event(run["run_id"], "environment")["built"] for run in runs]
    assert sorted(built) == [False] * 7 + [True]


def test_a_package_that_does_not_exist_fails_with_the_installers_reason(managed):
    managed.write("aml_config/conda_dependencies.yml", _conda("six==0.0.0.1"))
    result = managed.submit("-c", "local", "t.py")
    assert result.code == 250
    assert "six==0.0.0.1" in result.err
    control = managed.run("logs", "--control")
    assert "pip compile" in control.out
    assert managed.record()["reason"] == "preparation"


def test_without_prepare_an_unbuilt_environment_is_an_error(managed):
    managed.write("aml_config/local.runconfig", RUNCONFIG + "PrepareEnvironment: false\n")
    result = managed.submit("-c", "local", "t.py")
    assert result.code == 250
    assert "`PrepareEnvironment` is false" in result.err


def test_a_build_killed_in_the_middle_is_begun_anew(managed, tmp_path):
    first = managed.submit("-c", "local", "t.py")
    environment = managed.home / "environments" / managed.event(managed.record()["run_id"], "environment")["id"]
    assert first.code == 0, first.err
    managed.run("experiment", "clean", "--all", "--environments", "--yes")
    (environment / "bin").mkdir(parents=True)  # as a killed build leaves it
    (environment / "bin" / "python").write_text("half of it")
    result = managed.submit("-c", "local", "t.py")
    assert environment.joinpath(".complete").exists(), "the same environment, whole"
    assert (result.code, result.out) == (0, "1.16.0 True\n"), result.err


def test_cancel_ends_a_build(managed, tmp_path):
    slow = tmp_path / "python3"
    slow.write_text("#!/bin/sh\nsleep 300\n")
    slow.chmod(0o755)
    managed.write("aml_config/local.compute", COMPUTE + f"pythonLocation: {slow}\n")
    run_id = managed.start("-c", "local", "t.py")
    wait_for(lambda: any(event.get("name") == "environment" for event in managed.journal(run_id)))
    result = managed.run("cancel", "-r", run_id, "--grace", "0.2s")
    assert "Status: Canceled" in result.err
    assert not list(Path(managed.home, "environments").glob("*/.complete"))


def test_clean_removes_idle_environments_and_keeps_used_ones(managed):
    managed.submit("-c", "local", "t.py")
    managed.write("wait.py", "import time\nwhile True:\n    time.sleep(0.05)\n")
    run_id = managed.start("-c", "local", "wait.py")
    managed.event(run_id, "started")
    result = managed.run("experiment", "clean", "--all", "--environments", "--yes")
    assert "in use by a run" in result.err
    managed.run("cancel", "-r", run_id, "--grace", "0")
    result = managed.run("experiment", "clean", "--all", "--environments", "--yes")
    assert not list(Path(managed.home, "environments").glob("*/.complete")), result.err


def test_versions_before_a_release_are_installed_where_the_spec_allows_them(managed):
    managed.write("aml_config/conda_dependencies.yml", _conda("--pre", "six==1.16.0"))
    result = managed.submit("-c", "local", "t.py")
    assert result.code == 0, result.err
