"""The worker for conda packages as a build uses it: a Python with its packages, and a bench that talks to it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments import conda_build
from holdfast.farside.environments.conda_build import CondaDone, CondaProblem, CondaProgress
from holdfast.farside.environments.conda_channels import Settings, channel_urls, read_settings

UV = Path(sys.executable).with_name("uv")
PLATFORM = "linux-x86_64-glibc2.36"
MACHINE = dict(os.environ)  # at import, before tests have a home of their own: with the installer's cache


@dataclass(frozen=True)
class Bench:
    """`solve` and `install` as a build does them, in the test's own folder."""

    tool: Path
    folder: Path
    settings: Settings

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def start(self, request: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            conda_build.worker_command(str(self.tool)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdin
        process.stdin.write(request)
        process.stdin.close()
        return process

    def finish(self, process: subprocess.Popen[str]) -> tuple[CondaDone | CondaProblem, list[CondaProgress]]:
        assert process.stdout
        with process.stdout:
            output = process.stdout.read()
        code = process.wait()
        answers = [answer for answer in map(conda_build.read_line, output.splitlines()) if answer is not None]
        if not answers or isinstance(answers[-1], CondaProgress):
            return conda_build.ended_early(code, output), []
        return answers[-1], [each for each in answers if isinstance(each, CondaProgress)]

    def solve(
        self, names: list[str], *specs: str, cuda: str = "", locked: tuple[Any, ...] = ()
    ) -> CondaDone | CondaProblem:
        channels = channel_urls(names, specs, self.settings)
        request = conda_build.solve_request(specs, channels, PLATFORM, cuda, locked, str(self.cache))
        answer = self.finish(self.start(request))[0]
        return conda_build.about_spec(answer, specs) if isinstance(answer, CondaProblem) else answer

    def packages(self, names: list[str], *specs: str, cuda: str = "") -> tuple[Any, ...]:
        solved = self.solve(names, *specs, cuda=cuda)
        assert isinstance(solved, CondaDone), solved
        return solved.packages

    def request(self, packages: tuple[Any, ...], name: str, names: tuple[str, ...] = (), **options: Any) -> str:
        prefix = str(self.folder / name)
        channels = channel_urls(names, (), self.settings)
        return conda_build.install_request(packages, prefix, channels, PLATFORM, str(self.cache), **options)

    def install(
        self, packages: tuple[Any, ...], name: str, *names: str, **options: Any
    ) -> tuple[CondaDone | CondaProblem, list[CondaProgress]]:
        return self.finish(self.start(self.request(packages, name, names, **options)))


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has rattler."""
    folder = tmp_path_factory.mktemp("rattler")
    subprocess.run([UV, "venv", "-q", "-p", sys.executable, "--clear", folder], env=MACHINE, check=True)
    python = folder / "bin" / "python"
    subprocess.run([UV, "pip", "install", "-q", "-p", python, conda_build.RATTLER], env=MACHINE, check=True)
    return python


@pytest.fixture(name="bench")
def conda_bench(tool: Path, tmp_path: Path) -> Bench:
    return Bench(tool, tmp_path, read_settings({}, str(tmp_path)))
