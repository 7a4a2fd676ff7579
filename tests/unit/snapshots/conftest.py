"""A project folder, files in it, and git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.snapshots.manifest import ManifestEntry, decode
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import Snapshot, take_snapshot

Git = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def git() -> Git:
    """`git(folder, "add", ".")`; commits have a name of their own."""

    def run(folder: Path, *arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
        # An empty template: git's own holds a dozen sample hooks, and copying them takes longer than all the rest.
        command = ["git", "-c", "init.defaultBranch=main", "-c", "init.templateDir=", *identity, *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=os.environ).stdout

    return run


@pytest.fixture
def write(project: Path) -> Callable[..., None]:
    """`write("a/b.txt", "c.txt")` makes these files, each with its own name as content."""

    def make(*paths: str, folder: Path | None = None) -> None:
        for path in paths:
            place = (folder or project) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(path)

    return make


@pytest.fixture
def state(project: Path) -> Path:
    return project / ".holdfast"


@pytest.fixture
def take(project: Path, state: Path) -> Callable[[], Snapshot]:
    return lambda: take_snapshot(project, state, None)


@pytest.fixture
def repository(project: Path, git: Git) -> Path:
    """The project, which is a git work tree."""
    git(project, "init", "-q")
    return project


@pytest.fixture(params=["git", "walk"])
def tree(request: pytest.FixtureRequest) -> Path:
    """Both ways: the project, once as a git work tree, once as any folder."""
    found: Path = request.getfixturevalue("repository" if request.param == "git" else "project")
    return found


@pytest.fixture
def entries(state: Path) -> Callable[[Snapshot], dict[str, ManifestEntry]]:
    """`entries(snapshot)`: what its manifest has, by path."""
    store = ObjectStore(state / "objects")
    return lambda snapshot: {each.path: each for each in decode(store.read(snapshot.digest))}


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """One that has nothing yet, not even its folder."""
    return ObjectStore(tmp_path / "state" / "objects")
