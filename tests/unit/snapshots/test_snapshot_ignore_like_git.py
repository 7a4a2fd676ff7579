"""Our own walk gives the same answer as git, on random trees with random ignore files."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from holdfast.snapshots import git_files
from holdfast.snapshots.git_process import GitMissingError
from holdfast.snapshots.ignore import list_files
from unit.snapshots.random_trees import make_tree, random_ignore_file

SEEDS = int(os.environ.get("HOLDFAST_FUZZ", "10"))


@pytest.mark.parametrize("with_own_rules", [False, True])
def test_the_walk_lists_what_git_lists_on_random_trees(tmp_path, monkeypatch, git, with_own_rules):
    for seed in range(SEEDS):
        chance = random.Random(seed * 2 + with_own_rules)
        top = tmp_path / f"tree{seed}"
        make_tree(top, chance)
        folders = [top, *(each for each in top.iterdir() if each.is_dir() and not each.is_symlink())]
        root = chance.choice(folders[:3])  # a project may be a folder of its repository
        if with_own_rules:
            (root / ".amlignore").write_text(random_ignore_file(chance), newline="")
        git(top, "init", "-q")
        if chance.random() < 0.3:
            (top / ".git/info").mkdir()
            (top / ".git/info/exclude").write_text(random_ignore_file(chance), newline="")
        by_git = list_files(root)
        with monkeypatch.context() as patch:
            patch.setattr(git_files.Git, "_start", _no_git)
            by_walk = list_files(root)
        assert by_git.warnings == by_walk.warnings == ()
        assert sorted(by_walk.paths) == sorted(by_git.paths), _describe(seed, root, top)
        shutil.rmtree(top)


def _no_git(*_: object) -> None:
    raise GitMissingError


def _describe(seed: int, root: Path, top: Path) -> str:
    files = [*top.rglob(".gitignore"), *top.rglob(".amlignore"), top / ".git/info/exclude"]
    contents = [f"{each.relative_to(top)}: {each.read_text()!r}" for each in files if each.exists()]
    return f"seed {seed}, project {root.relative_to(top)}\n" + "\n".join(contents)
