"""`environment check`: findings about the environment file and the installed packages, and fixed files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.runs.conftest import Bench, bench  # noqa: F401 - a fixture
from kit.nvml import Device, Simulated

OLD = """\
dependencies:
  # the GPU's
  - python=3.11
  - pip:
      - tensorflow-gpu  # comment
      - azureml-requirements
"""


@pytest.fixture
def managed(bench: Bench) -> Bench:  # noqa: F811
    bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    bench.write("aml_config/conda_dependencies.yml", "dependencies:\n  - pip:\n      - six==1.16.0\n")
    return bench


@pytest.fixture
def own(bench: Bench, tmp_path: Path) -> Bench:  # noqa: F811
    """A Python of the user's own with a PyTorch for the CPU."""
    site = tmp_path / "own" / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    _installed(site, "torch", "2.6.0+cpu")
    (site / "torch").mkdir()
    (site / "torch" / "version.py").write_text("__version__ = '2.6.0+cpu'\ncuda = None\nhip = None\n")
    (tmp_path / "own" / "bin").mkdir()
    (tmp_path / "own" / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    home = os.path.dirname(os.path.realpath(sys.executable))
    (tmp_path / "own" / "pyvenv.cfg").write_text(f"home = {home}\nversion = {sys.version.split()[0]}\n")
    bench.write("aml_config/mine.compute", f"type: local\npythonLocation: {tmp_path}/own/bin/python\n")
    bench.write("aml_config/mine.runconfig", "Target: mine\nFramework: Python\n")
    return bench


def _installed(site: Path, name: str, version: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")


def test_names_that_are_gone_are_told_with_their_lines_and_put_right(managed: Bench) -> None:
    managed.write("aml_config/conda_dependencies.yml", OLD)
    result = managed.run("environment", "check", "-o", "table")
    assert result.code == 241
    assert "aml_config/conda_dependencies.yml:5: error: " in result.out
    assert "aml_config/conda_dependencies.yml:6: error: " in result.out
    assert "2 errors. Looked at: " in result.err
    found = json.loads(managed.run("environment", "check", "-o", "json").out)["findings"]
    assert [(each["package"], each["line"]) for each in found] == [("tensorflow-gpu", 5), ("azureml-requirements", 6)]

    fixed = managed.run("environment", "check", "--fix", "-o", "table")
    assert fixed.code == 0, fixed.out
    assert "`tensorflow-gpu` → `tensorflow" in fixed.err
    assert "conda_dependencies.yml:6: removed `azureml-requirements`" in fixed.err
    text = (managed.root / "aml_config/conda_dependencies.yml").read_text()
    assert "# the GPU's" in text
    assert "# comment" in text
    assert "tensorflow-gpu" not in text
    assert "Nothing found" in managed.run("environment", "check", "-o", "table").err


def test_it_is_said_what_was_looked_at(managed: Bench) -> None:
    early = managed.run("environment", "check", "-o", "table")
    assert (early.code, early.out) == (0, "")
    assert "Nothing found. Looked at: 1 line of aml_config/conda_dependencies.yml; nothing on local" in early.err
    managed.run("experiment", "prepare")
    built = managed.run("environment", "check", "-o", "table")
    assert (built.code, built.out) == (0, "")
    assert "1 package of environment " in built.err
    assert "--gpu asks" in built.err


def test_another_file_of_packages_is_checked_in_its_place(managed: Bench) -> None:
    managed.write("other.txt", "tensorflow-gpu\n")
    result = managed.run("environment", "check", "-d", "other.txt", "-o", "table")
    assert (result.code, result.out.splitlines()[0][:18]) == (241, "other.txt:1: error")


def test_ones_own_python_is_looked_at_where_it_is_what_runs_use(own: Bench) -> None:
    without = own.run("environment", "check", "-c", "mine", "-o", "table")
    assert without.code == 0, without.out
    assert "your own Python on mine" in without.err
    assert "torch 2.6.0+cpu for the CPU" in without.err
    wanted = own.run("environment", "check", "-c", "mine", "--gpu", "-o", "table")
    assert wanted.code == 241
    assert "error: PyTorch 2.6.0+cpu" in wanted.out


def test_a_machine_with_a_gpu_wants_builds_for_it(own: Bench, tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("gcc")
    gpus = Simulated(tmp_path / "gpus", (Device(),))
    result = own.run("environment", "check", "-c", "mine", "-o", "json", env=gpus.environment)
    assert result.code == 241
    answer = json.loads(result.out)
    assert [each["kind"] for each in answer["findings"]] == ["cpu-build"]
    assert answer["looked_at"]["wants_gpu"] is True
    assert len(answer["looked_at"]["gpus"]) == 1


CPU_BUILDS = "--extra-index-url https://download.pytorch.org/whl/cpu\ntorch==2.3.0+cpu  # small\ntensorflow-cpu\n"


def test_builds_for_the_cpu_are_told_with_their_lines_where_a_gpu_is_asked_for_and_put_right(managed: Bench) -> None:
    managed.write("cpu.txt", CPU_BUILDS)
    command = ("environment", "check", "-d", "cpu.txt", "-o", "table")
    without_a_wish = managed.run(*command, "--fix")
    assert (without_a_wish.code, without_a_wish.out) == (0, "")
    assert (managed.root / "cpu.txt").read_text() == CPU_BUILDS
    asked = managed.run(*command, "--gpu")
    assert asked.code == 241
    lines = asked.out.splitlines()
    assert [each[:16] for each in lines[::2]] == [f"cpu.txt:{line}: error" for line in (1, 2, 3)]
    assert [each.strip() for each in lines[1::2]] == [
        "Remove the line.",
        "Write `torch==2.3.0`.",
        "Write `tensorflow[and-cuda]`.",
    ]
    fixed = managed.run(*command, "--gpu", "--fix")
    assert (fixed.code, fixed.out) == (0, "")
    assert (managed.root / "cpu.txt").read_text() == "torch==2.3.0  # small\ntensorflow[and-cuda]\n"


@pytest.mark.parametrize(("wish", "code"), [("Gpus: 1", 241), ("RequireGpu: true", 241), ("Gpus: 0", 0)])
def test_a_run_configuration_asks_for_gpus_as_the_option_does(managed: Bench, wish: str, code: int) -> None:
    managed.write(
        "aml_config/conda_dependencies.yml",
        "dependencies:\n  - pip:\n      - torch==2.3.0+cpu\n      - --extra-index-url https://download.pytorch.org/whl/cpu\n",
    )
    managed.write("aml_config/local.runconfig", f"Target: local\nFramework: Python\n{wish}\n")
    result = managed.run("environment", "check", "-o", "json")
    kinds = [each["kind"] for each in json.loads(result.out)["findings"]]
    assert (result.code, kinds) == (code, ["cpu-build"] * (2 if code else 0))


def test_a_file_with_builds_for_the_cpu_is_wrong_for_a_machine_with_a_gpu_unless_none_is_wanted(
    managed: Bench, tmp_path: Path, needs: Callable[..., None]
) -> None:
    needs("gcc")
    gpus = Simulated(tmp_path / "gpus", (Device(),))
    managed.write("cpu.txt", CPU_BUILDS)
    command = ("environment", "check", "-d", "cpu.txt", "-o", "table")
    assert managed.run(*command, env=gpus.environment).code == 241
    managed.write("aml_config/local.runconfig", "Target: local\nFramework: Python\nGpus: 0\n")
    assert managed.run(*command, env=gpus.environment).code == 0


def test_a_file_that_the_target_makes_no_use_of_is_read_all_the_same(own: Bench) -> None:
    own.write("aml_config/conda_dependencies.yml", OLD)
    result = own.run("environment", "check", "-c", "mine", "-o", "table")
    assert result.code == 241
    assert "conda_dependencies.yml, which the target makes no use of" in result.err


def test_a_machine_that_cannot_be_asked_does_not_keep_the_file_from_being_checked(managed: Bench) -> None:
    managed.write(
        "aml_config/gone.compute", "type: remote\naddress: 127.0.0.1:1\nusername: me\nuserManagedEnvironment: false\n"
    )
    managed.write("aml_config/gone.runconfig", "Target: gone\nFramework: Python\n")
    result = managed.run("environment", "check", "-c", "gone", "-o", "table")
    assert result.code == 245
    assert "1 line of aml_config/conda_dependencies.yml" in result.err
    assert "What is installed was not looked at" in result.err
    managed.write("aml_config/conda_dependencies.yml", OLD)
    assert managed.run("environment", "check", "-c", "gone", "-o", "table").code == 241
