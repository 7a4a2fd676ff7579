"""An empty `.holdfast/` that another account, or an archive, put where a project will be: it waits for runs in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import ProjectError
from kit.accounts import Account
from kit.planted import PROJECT
from kit.projects import own_state


@pytest.fixture
def shared(tmp_path: Path, command: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which all accounts may make files, as on some shared disks, with a script."""
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(0o777)
    (root / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def waiting(shared: Path, other: Account) -> Path:
    state = shared / ".holdfast"
    state.mkdir()
    state.chmod(0o777)
    os.chown(state, other.uid, other.uid)
    return state


@pytest.mark.parametrize("content", [(), (".gitignore",)])
def test_an_empty_folder_of_another_account_is_not_used(content, waiting, other, command):
    for name in content:
        (waiting / name).touch()
    for words in (("submit", "--dry-run", "train.py"), ("history", "list")):
        done = command(*words)
        assert (done.code, done.out) == (PROJECT, "")
        assert f"`{waiting}` belongs to another account (`{other.name}`)" in done.err
    assert sorted(os.listdir(waiting)) == list(content)


def test_who_takes_it_over_is_told_whose_it_is(waiting, other, command):
    done = command("project", "trust", "--yes")
    assert done.code == 0
    assert done.err.splitlines()[2:-1] == [
        f"It belongs to another account (`{other.name}`), which can change these runs and add others.",
        "Other accounts may write there, and could change or add runs.",
    ]
    assert command("submit", "--dry-run", "train.py").code == 0


def test_one_that_is_put_there_meanwhile_is_not_used(shared, other, monkeypatch):
    """Between the look at the place and the record of it."""
    make: Callable[..., None] = Path.mkdir

    def and_swap(path: Path, *arguments: int, **options: int) -> None:
        make(path, *arguments, **options)
        if path == shared / ".holdfast":
            path.rename(shared / "aside")
            make(path)
            os.chown(path, other.uid, other.uid)

    monkeypatch.setattr(Path, "mkdir", and_swap)
    with pytest.raises(ProjectError):
        own_state(shared)
    assert os.listdir(shared / ".holdfast") == []


def test_an_open_folder_of_ones_own_is_closed_before_it_is_used(shared):
    """An archive may bring one, with a file that lets git track all in it."""
    state = shared / ".holdfast"
    state.mkdir()
    (state / ".gitignore").write_text("!*\n")
    state.chmod(0o777)
    own_state(shared)
    assert stat.S_IMODE(state.stat().st_mode) == 0o755
    assert (state / ".gitignore").read_text() == "*\n"
