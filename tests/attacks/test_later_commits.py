"""Repositories whose later commits bring runs into the `.holdfast/` that this account made: by an entry that was there
when it was made, by a form of the index that is rare, by a submodule, by a repository further up."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from holdfast.errors import ProjectError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.project import tracked_files
from holdfast.project.provenance import GITIGNORE
from kit.planted import PROJECT, git
from kit.projects import own_state
from unit.cli.conftest import Recorded

Command = Callable[..., Any]


@pytest.fixture
def upstream(tmp_path: Path, needs: Callable[..., None]) -> Path:
    """Of somebody else, with a file whose name comes before `.holdfast` and shares its first letter."""
    needs("git")
    root = tmp_path / "upstream"
    root.mkdir()
    (root / "train.py").write_text("print(1)\n")
    (root / GITIGNORE).write_text("*.o\n")
    git(root, "init", "-q")
    commit(root)
    return root


def commit(root: Path) -> None:
    git(root, "add", "--all", "--force")
    git(root, "commit", "-q", "-m", "x")


def bring_a_run(root: Path, state: str = ".holdfast") -> None:
    made = root.parent / "made"
    made.mkdir()
    Recorded(made).add(files={"driver_log": "theirs\n"})
    runs = root / state / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    (run,) = (made / ".holdfast" / "runs").iterdir()
    new = f"iris_{1 + len(list(runs.iterdir()))}"
    record = run / "submission.json"
    record.write_text(record.read_text().replace(f'"{run.name}"', f'"{new}"'))
    run.rename(runs / new)
    shutil.rmtree(made)
    commit(root)


def pull(root: Path) -> None:
    git(root, "pull", "-q", "--no-rebase", "--no-edit")


def paste(said: str, which: int, root: Path) -> None:
    """Run the command of one line of the hint, as it stands there."""
    line = said.splitlines()[1 + which]
    subprocess.run(line.partition(": ")[2], shell=True, cwd=root, check=True)


def is_used(command: Command) -> bool:
    done = command("history", "list", "--no-refresh")
    assert (done.code, done.out) in ((0, "[]\n"), (PROJECT, "")), done
    return bool(done.code == 0)


@pytest.fixture
def enter(upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Clone the upstream, and go there."""

    def clone(*options: str) -> Path:
        git(tmp_path, *options, "clone", "-q", "upstream", "me")
        monkeypatch.chdir(tmp_path / "me")
        return tmp_path / "me"

    return clone


def test_a_folder_that_git_tracks_is_not_made_anew(upstream, enter, command):
    bring_a_run(upstream)
    mine = enter()
    (mine / ".holdfast").rename(mine / ".holdfast-old")
    done = command("submit", "--dry-run", "train.py")
    assert done.code == PROJECT
    with pytest.raises(ProjectError):
        own_state(mine)
    assert not (mine / ".holdfast").exists()
    paste(done.err, 0, mine)
    own_state(Path.cwd())


def test_who_begins_anew_as_the_hint_says_does_not_get_later_runs(upstream, enter, command):
    bring_a_run(upstream)
    mine = enter()
    paste(command("history", "list").err, 0, mine)
    own_state(Path.cwd())
    assert is_used(command)
    git(mine, "commit", "-q", "-m", "without")
    bring_a_run(upstream)
    pull(mine)
    done = command("history", "list")
    assert done.code == PROJECT
    paste(done.err, 0, mine)
    assert is_used(command)


def test_who_takes_it_over_is_told_that_git_tracks_it(upstream, enter, command):
    bring_a_run(upstream)
    enter()
    done = command("project", "trust", "--yes")
    assert done.code == 0 and any(line.startswith("Git tracks this") for line in done.err.splitlines())
    assert "iris" in command("history", "list", "--no-refresh").out


@pytest.mark.parametrize("place", [".", "sub/deep"])
@pytest.mark.parametrize("form", ["2", "3", "4", "split", "split 4", "many files", "sha256"])
def test_every_form_of_the_index_is_understood(form, place, upstream, enter, command, monkeypatch):
    if form == "sha256":
        shutil.rmtree(upstream / ".git")
        git(upstream, "init", "-q", "--object-format=sha256")
    (upstream / place).mkdir(parents=True, exist_ok=True)
    (upstream / place / "train.py").write_text("print(2)\n")
    (upstream / place / (".holdfas" + "u" * 300)[:200]).touch()
    commit(upstream)
    number = form.split()[-1] if form[-1] in "24" else "4" if form in ("many files", "sha256") else "2"
    mine = enter("-c", f"index.version={number}")
    (mine / place / "aml_config").mkdir()
    monkeypatch.chdir(mine / place)
    git(mine, "config", "index.version", number)
    git(mine, "config", "feature.manyFiles", str(form == "many files").lower())
    own_state(Path.cwd())
    assert is_used(command)
    if "split" in form:
        git(mine, "config", "splitIndex.maxPercentChange", "100")
        git(mine, "update-index", "--split-index")
    elif form == "3":
        git(mine, "update-index", "--skip-worktree", GITIGNORE)  # needs a longer entry
    for is_shared in (False, True):
        bring_a_run(upstream, f"{place}/.holdfast")
        pull(mine)
        if is_shared and "split" in form:
            git(mine, "update-index", "--no-split-index")
            git(mine, "update-index", "--split-index")
        done = command("history", "list")
        assert done.code == PROJECT, done
        paste(done.err, 0, mine / place)
        assert is_used(command)
        git(mine, "commit", "-q", "-m", "without")


def test_a_sparse_clone_is_told_what_works_there(upstream, enter, command):
    bring_a_run(upstream)
    mine = enter()
    git(mine, "sparse-checkout", "set", "--cone", "--sparse-index", "other")
    assert not (mine / ".holdfast").exists()
    done = command("submit", "--dry-run", "train.py")
    assert done.code == PROJECT
    paste(done.err, 0, mine)
    own_state(Path.cwd())


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_repository_further_up_writes_there_too(is_ours, upstream, enter, command, monkeypatch):
    """`git init` in a folder of a clone hides the clone from git, and not from `git pull` above."""
    (upstream / "sub").mkdir()
    (upstream / "sub" / "train.py").write_text("print(2)\n")
    commit(upstream)
    mine = enter()
    (mine / "sub" / "aml_config").mkdir()
    monkeypatch.chdir(mine / "sub")
    if is_ours:
        git(mine / "sub", "init", "-q")
    own_state(Path.cwd())
    bring_a_run(upstream, "sub/.holdfast")
    pull(mine)
    done = command("history", "list")
    assert done.code == PROJECT
    paste(done.err, 0, mine / "sub")
    assert is_used(command)


def test_a_spelling_that_this_disk_takes_for_the_folder_counts(upstream, enter, command):
    """Links stand for what a disk of macOS or Windows does by itself."""
    mine = enter()
    own_state(Path.cwd())
    (mine / ".GIT").symlink_to(".git")
    bring_a_run(upstream, "other/.HoldFast")
    pull(mine)
    assert is_used(command), "it is in another folder"
    bring_a_run(upstream, ".HoldFast")
    pull(mine)
    done = command("history", "list")
    assert done.code == PROJECT
    paste(done.err, 0, mine)
    assert is_used(command) and not (mine / ".HoldFast").exists()


def test_on_such_a_disk_the_names_of_many_files_are_looked_at_all_at_once(upstream, enter, command, monkeypatch):
    for number in range(100):
        (upstream / f"{number}.txt").touch()
    commit(upstream)
    mine = enter()
    own_state(mine)
    (mine / ".GIT").symlink_to(".git")
    looked = mock.Mock(wraps=reserved_path)
    monkeypatch.setattr(tracked_files, "reserved_path", looked)
    assert is_used(command)
    assert [len(call.args[0]) > 100 for call in looked.call_args_list] == [True]


@pytest.fixture
def nested(upstream: Path, tmp_path: Path) -> Callable[[], None]:
    """Makes the upstream's `.holdfast` a submodule, and then gives that one more run."""
    runs = tmp_path / "runs-of-others"

    def bring() -> None:
        if not runs.exists():
            runs.mkdir()
            git(runs, "init", "-q")
            bring_a_run(runs, ".")
            git(upstream, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "-f", str(runs), ".holdfast")
        else:
            bring_a_run(runs, ".")
            git(upstream / ".holdfast", "pull", "-q")
        commit(upstream)

    return bring


def update(root: Path) -> None:
    git(root, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")


def test_a_submodule_in_its_place_is_not_used_and_does_not_come_back(nested, enter, command):
    nested()
    mine = enter()
    update(mine)
    assert (mine / ".holdfast" / ".git").exists()
    assert command("project", "trust", "--yes").code == PROJECT, "each update would bring more"
    (mine / ".holdfast").rename(mine / "aside")
    assert command("submit", "--dry-run", "train.py").code == PROJECT
    (mine / "aside").rename(mine / ".holdfast")
    paste(command("history", "list").err, 0, mine)
    own_state(Path.cwd())
    git(mine, "commit", "-q", "-m", "without")
    nested()
    for attempt in (pull, update):
        with contextlib.suppress(subprocess.CalledProcessError):  # a conflict
            attempt(mine)
    assert not is_used(command)


def test_a_submodule_that_comes_later_leaves_the_own_runs(nested, enter, command):
    mine = enter()
    own_state(Path.cwd())
    nested()
    pull(mine)
    done = command("history", "list")
    assert done.code == PROJECT
    paste(done.err, 0, mine)
    assert is_used(command)


def test_a_submodule_that_nobody_fetched_yet_is_no_empty_folder(nested, enter, command):
    nested()
    mine = enter()
    assert list((mine / ".holdfast").iterdir()) == []
    done = command("submit", "--dry-run", "train.py")
    assert done.code == PROJECT
    assert list((mine / ".holdfast").iterdir()) == []
    paste(done.err, 0, mine)
    own_state(Path.cwd())


def test_a_repository_in_the_folder_is_refused(enter, command):
    mine = enter()
    own_state(Path.cwd())
    git(mine / ".holdfast", "init", "-q")
    done = command("history", "list")
    assert done.code == PROJECT and re.search(r"`.*\.holdfast` is a git repository", done.err)
    paste(done.err, 0, mine)
    own_state(Path.cwd())


def test_a_tracked_link_in_its_place_is_removed_for_good(upstream, enter, command):
    (upstream / ".holdfast").symlink_to("elsewhere")
    commit(upstream)
    mine = enter()
    paste(command("history", "list").err, 0, mine)
    git(mine, "commit", "-q", "-m", "git knows that it is gone")
    own_state(Path.cwd())
    assert is_used(command)


def test_what_is_no_index_beside_the_index_hides_nothing(upstream, enter, command):
    bring_a_run(upstream)
    mine = enter()
    (mine / ".git" / "sharedindex.a").mkdir()
    os.mkfifo(mine / ".git" / "sharedindex.b")
    assert not is_used(command)
