"""What an attacker leaves in a project's `.holdfast/`, what a user has beside it, and the commands that meet it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.projects import own_state
from unit.cli.conftest import Recorded

PROJECT = 242
CLAIMED = "0123456789abcdef0123456789abcdef"
GROUPS = (
    ("history", "list"),
    ("history", "list", "--output", "json"),
    ("history", "list", "--no-refresh"),
    ("history", "last"),
    ("history", "info", "-r", "last"),
    ("history", "info", "-r", "last", "-a", "driver_log"),
    ("history", "compare", "last", "last"),
    ("history", "download", "-r", "last", "-d", "out"),
    ("history", "promote", "-r", "last", "-ap", "outputs/model", "-n", "model"),
    ("history", "rebuild"),
    ("status",),
    ("logs",),
    ("logs", "-f"),
    ("cancel", "-r", "last"),
    ("submit", "-c", "local", "train.py"),
    ("submit", "--dry-run", "train.py"),
    ("experiment", "stacks", "-r", "last"),
    ("experiment", "clean", "--all"),
    ("experiment", "clean", "--run", "last"),
    ("experiment", "diagnostics", "-r", "last"),
    ("project", "restore", "-r", "last"),
    ("history", "import", "-t", "local"),
)
"""Commands of every group that read or write the project's own folder."""


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.com", "-c", "core.excludesFile=/dev/null")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def tree(*roots: Path) -> dict[str, tuple[int, object]]:
    """All that is below the folders, without Holdfast's own on this machine."""
    found: dict[str, tuple[int, object]] = {}
    for root in roots:
        for place, folders, names in os.walk(root):
            if Path(place) == Path(os.environ["HOLDFAST_HOME"]):
                folders.clear()
                continue
            for name in (*folders, *names):
                path = os.path.join(place, name)
                about = os.lstat(path)
                content: object = None
                if stat.S_ISREG(about.st_mode):
                    content = Path(path).read_bytes()
                elif stat.S_ISLNK(about.st_mode):
                    content = os.readlink(path)
                found[path] = (about.st_mode, content)
    return found


def replace_by_link(path: Path, target: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def plain(tree: dict[str, tuple[int, object]], *roots: Path) -> dict[str, tuple[int, object]]:
    """What of it is the user's."""
    return {path: about for path, about in tree.items() if any(path.startswith(f"{root}/") for root in roots)}


@pytest.fixture
def theirs(tmp_path: Path, needs: Callable[..., None]) -> Path:
    """The attacker's project, with an ordinary history."""
    needs("git")
    root = tmp_path / "theirs"
    root.mkdir()
    (root / "train.py").write_text("print(1)\n")
    Recorded(root).add(files={"outputs/model": "m", "driver_log": "hi\n"})
    state = root / ".holdfast"
    for name in ("origin.json", ".gitignore"):
        (state / name).unlink(missing_ok=True)
    (state / "project.json").write_text(json.dumps({"format": 1, "id": CLAIMED}))
    git(root, "init", "-q")
    return root


@pytest.fixture
def docs(isolated: Path) -> Path:
    """Files of the user, some with names that Holdfast uses."""
    folder = isolated / "Docs"
    (folder / "iris_1.new").mkdir(parents=True)
    (folder / "iris_1.new" / "thesis.txt").write_text("years of work\n")
    os.utime(folder / "iris_1.new", (1, 1))
    (folder / "letter.txt").write_text("dear\n")
    (isolated / "victim").write_bytes(b"precious\n")
    return folder


@pytest.fixture
def clone(theirs: Path, docs: Path, tmp_path: Path) -> Callable[[], Path]:
    """Commits what the attacker has and clones it to the user's disk."""

    def make() -> Path:
        git(theirs, "add", "--all", "--force")
        git(theirs, "commit", "-q", "-m", "x")
        git(tmp_path, "clone", "-q", str(theirs), "mine")
        assert os.path.lexists(tmp_path / "mine" / ".holdfast")
        return tmp_path / "mine"

    return make


@pytest.fixture
def adopted(isolated: Path, docs: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own project, with a run that goes on as far as is known."""
    root = isolated / "own"
    root.mkdir()
    (root / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(root)
    own_state(root)
    Recorded(root).add(files={"outputs/model": "m", "driver_log": "hi\n"})
    assert command("history", "rebuild").code == 0
    return root
