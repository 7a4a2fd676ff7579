"""What the installer gets when another run's environment is built again: only what belongs to its indexes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.packages_search import read_environment_spec
from holdfast.workbench.submitting import environment_choice


def spec(folder: Path, index: str) -> EnvironmentSpec:
    (folder / "r.txt").write_text(f"--index-url {index}\nsix\n")
    found, problems = read_environment_spec(folder, "r.txt")
    assert found is not None, problems
    return found


@pytest.mark.parametrize(
    ("now", "sent"),
    [
        ("https://me:n3w@a.example/simple", ["me:n3w"]),
        ("https://me:n3w@b.example/simple", []),
        ("https://a.example/simple?token=n3w", []),
    ],
)
def test_a_password_is_sent_for_the_address_that_it_is_for(tmp_path, now, sent):
    before = {"secrets": list(spec(tmp_path, "https://me:0ld@a.example/simple").credentials)}
    context: Any = SimpleNamespace(environment={})
    configuration: Any = SimpleNamespace(environment=spec(tmp_path, now))
    assert list(environment_choice._secrets_of_plan(before, configuration, context).values()) == sent
