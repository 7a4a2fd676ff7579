"""A run as a script sees it: its folder, its environment, and ways to be inside it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kit.metric_points import metric_points

SOURCE = Path(__file__).parents[3] / "src"
SHIM = SOURCE / "holdfast" / "farside" / "shim"


@dataclass(frozen=True)
class InRun:
    """A run's folder, and scripts that run in it with a bare interpreter."""

    directory: Path

    def environment(self, *more_path: Path) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, (SOURCE, SHIM, *more_path))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOLDFAST_RUN_ID": "digits_1",
            "HOLDFAST_RUN_DIRECTORY": str(self.directory),
            "HOLDFAST_PROJECT": "digits",
            "HOLDFAST_TARGET": "local",
            "HOLDFAST_RUN_CONFIGURATION": "quick",
        }

    def start(self, script: str, *more_path: Path) -> subprocess.Popen[str]:
        argv = [sys.executable, "-S", "-c", textwrap.dedent(script)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, env=self.environment(*more_path), stdout=pipe, stderr=pipe, text=True, cwd=self.directory
        )

    def execute(self, script: str, *more_path: Path) -> subprocess.CompletedProcess[str]:
        process = self.start(script, *more_path)
        output, errors = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def values(self) -> dict[str, Any]:
        """What was logged under each name: the value if there is one, else the list of them."""
        found = metric_points(self.directory / "metrics")
        return {
            name: each[0][2] if len(each) == 1 else [value for _, _, value, _ in each] for name, each in found.items()
        }

    def steps(self, name: str) -> list[int | None]:
        return [step for *_, step in metric_points(self.directory / "metrics")[name]]

    def files(self) -> list[Path]:
        return sorted((self.directory / "metrics").glob("*.jsonl"))


@pytest.fixture
def run(tmp_path: Path) -> InRun:
    directory = tmp_path / "run"
    directory.mkdir()
    return InRun(directory)


@pytest.fixture
def api(run: InRun, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A copy of the in-run API with its own state, inside the run."""
    for name, value in run.environment().items():
        if name.startswith("HOLDFAST_"):
            monkeypatch.setenv(name, value)
    folder = SOURCE / "holdfast"
    spec = importlib.util.spec_from_file_location(
        "holdfast_in_run", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    if module._file.opened[1] >= 0:
        os.close(module._file.opened[1])
