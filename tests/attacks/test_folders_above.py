"""A neighbour's files above the project, in a folder where everybody may make some: they decide nothing."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from uv import find_uv_bin

from holdfast.environments.uv_export import export_lock
from holdfast.project.configuration import read_environment_spec

NEIGHBOUR = 23999
PROJECT = '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["six"]\n'
LOCK = f"""version = 1
requires-python = ">=3.10"

[[package]]
name = "six"
version = "1.17.0"
source = {{ registry = "https://h.example/simple" }}
wheels = [
    {{ url = "https://h.example/six-1.17.0-py3-none-any.whl", hash = "sha256:{"ab" * 32}" }},
]

[[package]]
name = "p"
version = "1"
source = {{ virtual = "." }}
dependencies = [
    {{ name = "six" }},
]
"""


class Sticky(NamedTuple):
    """A folder as /tmp is, with a project of this account in it."""

    folder: Path
    project: Path

    def planted(self, name: str, text: str) -> None:
        """By another account."""
        self.run("tee", name, given=text)

    def run(self, *words: str, given: str = "") -> None:
        account = {"user": NEIGHBOUR, "group": NEIGHBOUR, "extra_groups": []}
        subprocess.run(
            words,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
            input=given,
            text=True,
            check=True,
            capture_output=True,
            **account,  # type: ignore[call-overload]
        )


@pytest.fixture
def sticky(needs: Callable[..., None]) -> Iterator[Sticky]:
    needs("git", root=True)
    folder = Path(tempfile.mkdtemp(prefix="hfa-", dir="/tmp"))
    folder.chmod(0o1777)
    (folder / "p").mkdir()
    yield Sticky(folder, folder / "p")
    shutil.rmtree(folder)


@pytest.mark.parametrize("home", ["elsewhere", "beside the project", "none"])
def test_a_workspace_above_does_not_replace_the_packages_of_a_lock(sticky, home, tmp_path, monkeypatch):
    homes = {"elsewhere": tmp_path / "home", "beside the project": sticky.folder / "home", "none": tmp_path / "none"}
    if home != "none":
        homes[home].mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(sticky.folder))
    (sticky.project / "pyproject.toml").write_text(PROJECT)
    (sticky.project / "uv.lock").write_text(LOCK)
    members = '["*", "*/*", "*/*/*"]'
    sticky.planted("pyproject.toml", f"[tool.uv.workspace]\nmembers = {members}\n")
    sticky.planted("uv.lock", LOCK.replace("1.17.0", "1.0.0").replace('virtual = "."', 'virtual = "p"'))
    spec, problems = read_environment_spec(sticky.project, "uv.lock")
    assert spec is not None, problems
    found = export_lock(spec, sticky.project, find_uv_bin(), tmp_path / "cache", homes[home])
    assert found.locked == f"six==1.17.0 --hash=sha256:{'ab' * 32}\n"
    assert not list(sticky.folder.rglob("*-uv-*"))
