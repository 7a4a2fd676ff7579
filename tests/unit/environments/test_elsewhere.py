"""How Holdfast asks uv to choose packages for another machine; a program that records its arguments stands in for
uv."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from holdfast.environments.environment_plan import Wishes, plan_environment
from holdfast.environments.foreign_resolution import ForeignMachine, Installer, resolve_for, uv_platform, wheel_files
from holdfast.errors import NotAvailable, PreparationError
from holdfast.frozen import replace
from holdfast.plan import EnvironmentPlan, text
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from unit.farside.programs import program

MACHINE = ForeignMachine("linux-x86_64-glibc2.31", "3.10.4", "450.80.02")
PROGRAM = """\
#!{python}
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
with open(here + "/asked", "a") as log:
    log.write(json.dumps([words, os.environ.get("UV_CUDA_DRIVER_VERSION"), os.environ.get("HOLDFAST_FILES")]) + "\\n")
if os.path.exists(here + "/says"):
    sys.exit(open(here + "/says").read())
old = "--torch-backend" in words
build = "cpu" if "cpu" in words else "cu118"
lines = ["torch==2.3.0+" + build] if old else ["torch==2.9.0", "nvidia-cuda-runtime-cu12==12.8.90"]
target = words[words.index("--output-file") + 1]
open(target, "w").write("" if target.endswith(".toml") else "\\n".join(lines) + "\\n")
"""


@pytest.fixture
def uv(tmp_path: Path) -> Installer:
    path = program(tmp_path / "uv", PROGRAM.format(python=sys.executable))
    return Installer(str(path), {}, {"HOLDFAST_INDEX_1": "me:secret"}, tmp_path / "project", tmp_path)


def asked(uv: Installer) -> list[list[object]]:
    return [json.loads(line) for line in Path(uv.program).with_name("asked").read_text().splitlines()]


def plan(*lines: str) -> EnvironmentPlan:
    spec = EnvironmentSpec(pip=tuple(Requirement(line, 3, "r.txt") for line in lines))
    return plan_environment(spec, "s" * 64, text("python"), text("uv"), (), Wishes())


def test_a_build_of_pytorch_that_the_driver_there_does_not_run_is_not_chosen(uv):
    lock = resolve_for(MACHINE, plan("torch"), uv)
    assert (lock["requirements"], lock["backend"]) == ("torch==2.3.0+cu118\n", "auto")
    assert [driver for _, driver, _ in asked(uv)] == [None, "450.80.02"]

    wheel_files(lock, MACHINE, plan("torch"), uv)
    words = asked(uv)[-1][0]
    assert isinstance(words, list)
    assert words[words.index("--torch-backend") + 1] == "cu118"


def test_a_machine_without_a_gpu_is_sent_the_build_for_the_cpu(uv):
    without = replace(MACHINE, driver="", is_without_gpu=True)
    lock = resolve_for(without, plan("torch"), uv)
    assert (lock["requirements"], lock["backend"]) == ("torch==2.3.0+cpu\n", "cpu")
    chosen = resolve_for(without, plan("torch==2.9.0+cu128"), uv)
    assert (chosen["requirements"].splitlines()[0], chosen["backend"]) == ("torch==2.9.0", "")


@pytest.mark.parametrize("driver", ["", "580.65.06"])
def test_the_usual_build_is_chosen_where_it_runs_or_if_that_is_unknown(uv, driver):
    lock = resolve_for(ForeignMachine(MACHINE.platform, MACHINE.python, driver), plan("torch"), uv)
    assert lock["requirements"].startswith("torch==2.9.0\n")
    assert lock["backend"] == ""


def test_nothing_is_asked_for_a_spec_without_packages_or_with_a_lock_of_its_own(uv):
    assert resolve_for(MACHINE, plan(), uv)["requirements"] == ""
    own = replace(plan("six"), locked="--index-url https://x.example\nsix==1.16.0 --hash=sha256:aa\n")
    assert resolve_for(MACHINE, own, uv)["requirements"] == "six==1.16.0 --hash=sha256:aa"
    assert not Path(uv.program).with_name("asked").exists()


@pytest.mark.parametrize(
    "line", ["${HOLDFAST_FILES}", "${HOLDFAST_FILES}/lib[x]", "lib @ ${HOLDFAST_FILES}/lib ; python_version > '3'"]
)
def test_a_projects_build_never_runs_here(uv, line):
    with pytest.raises(PreparationError, match="builds never run on this machine"):
        resolve_for(MACHINE, plan("six", line), uv)
    assert not Path(uv.program).with_name("asked").exists()
    assert resolve_for(MACHINE, plan("${HOLDFAST_FILES}/x-1-py3-none-any.whl"), uv)


def test_what_uv_says_is_shown_without_secrets(uv):
    Path(uv.program).with_name("says").write_text("error: Failed to fetch: https://me:secret@x.example/simple/six/\n")
    with pytest.raises(PreparationError) as caught:
        resolve_for(MACHINE, plan("six"), uv)
    assert "me:secret" not in str(caught.value)
    assert "***@x.example" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linux-x86_64-glibc2.36", "x86_64-manylinux_2_36"),
        ("linux-x86_64-glibc2.27", "x86_64-manylinux_2_17"),
        ("linux-aarch64-glibc2.31", "aarch64-manylinux_2_31"),
        ("linux-x86_64-glibc2.99", "x86_64-manylinux_2_40"),
        ("linux-aarch64-musl", "aarch64-unknown-linux-musl"),
    ],
)
def test_the_newest_system_that_runs_there_is_chosen(name, expected):
    assert uv_platform(name) == expected


@pytest.mark.parametrize("name", ["linux-ppc64le-glibc2.36", "linux-x86_64-glibc2.5", "darwin-arm64-musl", ""])
def test_a_machine_that_uv_does_not_know_is_refused_with_a_remedy(name):
    with pytest.raises(NotAvailable) as caught:
        uv_platform(name)
    assert f"`{name}`" in caught.value.message
    assert "userManagedEnvironment" in caught.value.hint
