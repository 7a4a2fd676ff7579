"""What a README says to type does the same with `holdfast submit` in front: on this machine, on a box, and there in a
container."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.workbench.submitting.tools import find_uv
from holdfast.written_files import path_in_project
from integration.runs.conftest import end_what_is_left
from kit.boxes import Box
from kit.docker.images import PYTHON
from kit.homes import furnish, share_packages
from kit.repositories import Outcome, Repository, Step, by_hand, differences, read_tree, repositories

TARGETS = ("local", "remote", "remotedocker")
pytestmark = pytest.mark.time_limit(300, "runs every command four times, and may install packages")


@dataclass(frozen=True)
class Laptop:
    """Where commands are typed. `variables`: the environment of `holdfast`; `own`: of somebody who types the commands
    by hand, as on `local`."""

    command: Callable[..., Any]
    variables: dict[str, str]
    own: dict[str, str]

    def submit(self, target: str, step: Step, top: Path) -> Outcome:
        """`holdfast submit` in front of the command, and what the run made, brought home."""
        words = ["submit", "-c", target, *step.options, *shlex.split(step.command)]
        active = {name: self.own[name] for name in ("VIRTUAL_ENV", "PATH") if name in self.own}
        variables = self.variables | (active if target == "local" else {})
        done = self.command(*words, cwd=top / step.folder, env=variables, timeout=250)
        home = top.parent / "downloads" / str(len(list(top.parent.glob("downloads/*"))))
        brought = self.command("history", "download", "-r", "last", "-d", str(home), cwd=top, env=self.variables)
        note = "" if brought.code == 0 else f"\nhistory download: {brought.err}"
        files = {
            path_in_project(name) if name.startswith("above/") else name: data for name, data in read_tree(home).items()
        }
        return Outcome(done.code, done.out, files, done.err + note)


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, id=each.folder.name, marks=[pytest.mark.soak] * each.is_soak) for each in repositories()],
)
def test_the_readmes_commands_do_the_same_through_holdfast(
    case: Repository, docker_box: Callable[..., Box], holdfast: Callable[..., Any], tmp_path: Path
) -> None:
    box = docker_box()
    home = Path(os.environ["HOLDFAST_HOME"])
    furnish(share_packages(home) if case.packages else home)
    top = case.copy(tmp_path / "hand")
    environment = python_for(case, top, tmp_path)
    laptop = Laptop(holdfast, box.environment, environment)
    expected = [by_hand(step, top, environment) for step in case.steps]
    found = []
    for target in TARGETS:
        clone = case.copy(tmp_path / target)
        write_target(case, target, box, clone)
        for step, hand in zip(case.steps, expected, strict=True):
            if step.is_here:
                by_hand(step, clone, environment)
            else:
                run = laptop.submit(target, step, clone)
                found += [f"{target}: $ {step.command}\n{each}" for each in differences(case, hand, run, top)]
        found += [f"{target}: edited: {line}" for line in edited(clone)]
    end_what_is_left(home)
    end_what_is_left(box.home)
    assert not found, "\n\n".join(found)


def python_for(case: Repository, top: Path, below: Path) -> dict[str, str]:
    """The environment of somebody who types the commands, with the repository's packages."""
    if not case.packages:
        return dict(os.environ)
    place = below / "venv"
    for words in (("venv", "-q", "--python", sys.executable, str(place)), ("pip", "install", "-q", *case.packages)):
        variables = {**os.environ, "VIRTUAL_ENV": str(place)}
        subprocess.run([find_uv(), *words], cwd=top, env=variables, check=True)
    return {**os.environ, "VIRTUAL_ENV": str(place), "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def write_target(case: Repository, target: str, box: Box, top: Path) -> None:
    """As `computetarget attach` does. The repository's own packages are installed if it has any."""
    if target == "local":
        return
    folder = top / "aml_config"
    folder.mkdir()
    lines = [
        f"type: {target}",
        *box.compute.splitlines()[1:],
        f"userManagedEnvironment: {str(not case.packages).lower()}",
    ]
    if target == "remotedocker":
        lines.append(f"baseDockerImage: {PYTHON}")
    (folder / f"{target}.compute").write_text("".join(f"{line}\n" for line in lines))
    (folder / f"{target}.runconfig").write_text(f"Target: {target}\nFramework: Python\n")
    (top / ".git" / "info" / "exclude").write_text("aml_config/\n")


def edited(top: Path) -> list[str]:
    """What `git status` tells of a clone after its runs."""
    command = ["git", "status", "--porcelain"]
    return subprocess.run(command, cwd=top, capture_output=True, text=True, check=True).stdout.splitlines()
