"""A project whose runs on this machine have an environment that Holdfast builds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.environments.conda_benches import tool  # noqa: F401 - a fixture, here because a session has one
from integration.runs.conftest import Bench, bench  # noqa: F401 - a fixture


@dataclass(frozen=True)
class Managed(Bench):
    """A bench for the target `local` with `userManagedEnvironment: false`."""

    def wants(self, *requirements: str, python: str = "", file: str = "aml_config/conda_dependencies.yml") -> None:
        """Write the spec: lines below `pip:`, and the Python if one is pinned."""
        pin = [f"  - python={python}\n"] if python else []
        lines = ["  - pip:\n", *(f'      - "{each}"\n' for each in requirements)] if requirements else []
        self.write(file, "".join(["dependencies:\n", *pin, *lines]))

    def submit(self, *arguments: str, **options: Any) -> Any:
        return super().submit("-c", "local", *arguments, **{"timeout": 180, **options})

    def environment(self, run_id: str = "") -> dict[str, Any]:
        """What the journal of a run, or of the last one, says of its environment."""
        return self.event(run_id or self.record()["run_id"], "environment")

    def built(self) -> list[Path]:
        return sorted(each.parent for each in (self.home / "environments").glob("*/.complete"))

    def control_logs(self) -> list[str]:
        return [path.read_text(errors="replace") for path in self.home.glob("runs/*/*/control_log")]


@pytest.fixture
def managed(bench: Bench) -> Managed:  # noqa: F811
    made = Managed(bench.root, bench.home, bench.command)
    made.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    made.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    return made
