"""Each folder of `cases/findings` is a prefix with packages, and a machine: what is read from it, and the findings.

`libraries.json` names what the libraries of the prefix have code for; they are made when the case is run.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments import build_findings
from holdfast.farside.environments.build_findings import judge
from holdfast.farside.environments.drivers import machine_of
from holdfast.farside.environments.frameworks import Build, framework_of, read_environment
from holdfast.farside.environments.installed import WHEEL, InstalledPackage
from kit.fatbins import cuda_library

CASES = Path(__file__).parents[3] / "cases" / "findings"
NAMES = sorted(path.name for path in CASES.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_and_what_is_said_of_an_environment(name, tmp_path):
    expected = json.loads((CASES / name / "expected.json").read_text())
    found = run(name, tmp_path)
    assert found == expected
    assert bool(found["findings"]) != name.startswith("silent-")
    assert all(framework_of(build["package"]) == build["framework"] for build in found["builds"])


def test_every_kind_of_finding_has_a_case():
    said = [each for name in NAMES for each in json.loads((CASES / name / "expected.json").read_text())["findings"]]
    assert {each["kind"] for each in said} == set(build_findings.KINDS)
    assert {each["severity"] for each in said} == {"error", "warning"}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_held_against_a_build_of_which_nothing_is_known(name, tmp_path):
    """Then only the packages have findings: names that write the same files, wheels for another system."""
    machine = json.loads((CASES / name / "machine.json").read_text())
    environment = read_environment(str(made(name, tmp_path)))
    unknown = [Build(each.framework, each.package, each.version) for each in environment.builds]
    said = judge(environment.packages, unknown, machine_of(machine, machine["platform"], machine["python"]), True)
    assert {each.kind for each in said} <= {"shadowed", "other-system", "other-python", "plugin-mismatch"}


def test_a_finding_of_many_packages_is_named_after_the_framework_among_them():
    """Other findings are about the first only; whether a run can use the GPU depends on the framework."""
    names = ("aiohttp", "lxml", "torch")
    packages = [
        InstalledPackage(name, "1.0", "", WHEEL, ("cp39-cp39-linux_x86_64",), (".cpython-39-x86_64-linux-gnu.so",))
        for name in names
    ]
    here = machine_of({"devices": [], "driver": None, "cuda": None}, "linux-x86_64-glibc2.36", "3.11.9")
    (found,) = judge(packages, [], here, True)
    assert (found.kind, found.package) == ("other-python", "torch")
    assert found.sentence.startswith("`torch` 1.0, `aiohttp` 1.0, `lxml` 1.0 were built for another Python")


@pytest.mark.parametrize(
    "package", ["lxml", "torchvision", "torch-scatter", "tensorflow-io", "jaxtyping", "xgboost-ray"]
)
def test_what_goes_with_a_framework_is_none(package):
    assert framework_of(package) == ""


def run(name: str, folder: Path) -> dict[str, Any]:
    machine = json.loads((CASES / name / "machine.json").read_text())
    prefix = made(name, folder)
    environment = read_environment(str(prefix))
    here = machine_of(machine, machine["platform"], machine["python"])
    said = judge(environment.packages, environment.builds, here, machine["wants_gpu"])
    result = {
        "builds": [row(build, prefix) for build in environment.builds],
        "findings": [dict(each._asdict()) for each in said],
    }
    return json.loads(json.dumps(result).replace(str(prefix), "PREFIX"))


def made(name: str, folder: Path) -> Path:
    prefix = folder / "prefix"
    shutil.copytree(CASES / name / "prefix", prefix)
    described = CASES / name / "libraries.json"
    for path, row in json.loads(described.read_text() if described.exists() else "{}").items():
        major, minor = str(row.get("ptx", "8.0")).split(".")
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_bytes(cuda_library(row["code"], (int(major), int(minor)), fatbins=3))
    return prefix


def row(build: Build, prefix: Path) -> dict[str, Any]:
    """The difference from a build of which nothing is known."""
    empty = Build("", "", "")._asdict()
    found = {key: value for key, value in build._asdict().items() if value != empty[key]}
    return {**found, **({"libraries": list(build.libraries)} if build.libraries else {})}


@pytest.mark.parametrize(
    ("beside", "severity"),
    [
        (Build("tensorflow", "tensorflow", "2.0", is_cpu=False), "warning"),
        (Build("tensorflow", "tensorflow", "2.0", is_cpu=None), "error"),
        (Build("tensorflow", "tensorflow", "2.0", is_cpu=False, other="ROCm"), "error"),
    ],
    ids=["for this GPU", "unknown purpose", "for another maker's"],
)
def test_a_cpu_build_is_excused_only_by_one_that_is_known_to_use_the_gpu(beside: Build, severity: str) -> None:
    here = machine_of({"devices": [], "driver": None, "cuda": None}, "linux-x86_64-glibc2.36", "3.11.9")
    (found,) = judge([], [Build("torch", "torch", "2.0", is_cpu=True), beside], here, True)
    assert (found.kind, found.package, found.severity) == ("cpu-build", "torch", severity)
