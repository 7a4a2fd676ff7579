"""Our own walk gives the answer that git gives, on random trees with random ignore files."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from holdfast.snapshots import git_files
from holdfast.snapshots.ignore import list_files

SEEDS = int(os.environ.get("HOLDFAST_FUZZ", "30"))

NAMES = r"a|b|ab|abc|b.c|x.py|build|a b|#a|!b|A1|[a]|é|lib|a\b| "
SHAPES = (
    r"a|b|*|**|?|a*|*b|*.py|*.c|a?|??|[ab]|[!a]|[^a]*|[a-c]*|[]a]|[a-]b|[[:alpha:]]|[[:upper:]]*|[[:nope:]]|[a|"
    r"build|lib|a b|a\ b|\#a|\!b|#a|\[a\]|é|[[:digit:]a]|[\]a]|a\|***|a**|b.[c-d]|[!a-b]c|[--b]|a\\b|[[:a]|"
    r"?\b|x.py"
)
PARTS, GLOBS = NAMES.split("|"), SHAPES.split("|")


def random_pattern(chance: random.Random) -> str:
    text = "/".join(chance.choice(GLOBS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3])))
    if chance.random() < 0.2:
        text = "/" + text
    if chance.random() < 0.3:
        text += "/"
    if chance.random() < 0.1:
        text += chance.choice([" ", "  ", "\\ ", "\r"])
    return ("!" if chance.random() < 0.35 else "") + text


def random_ignore_file(chance: random.Random) -> str:
    lines = [random_pattern(chance) for _ in range(chance.randint(1, 5))]
    return "\n".join(lines) + chance.choice(["", "\n", "\n\n"])


def make_tree(folder: Path, chance: random.Random, depth: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    if chance.random() < 0.4:
        (folder / ".gitignore").write_text(random_ignore_file(chance), newline="")
    for name in chance.sample(PARTS, chance.randint(2, 6)):
        if depth < 3 and chance.random() < 0.45:
            make_tree(folder / name, chance, depth + 1)
        elif chance.random() < 0.1:
            (folder / name).symlink_to(".")
        else:
            (folder / name).write_text("")


@pytest.mark.parametrize("with_own_rules", [False, True])
def test_the_walk_lists_what_git_lists_on_random_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: object, with_own_rules: bool
) -> None:
    for seed in range(SEEDS):
        chance = random.Random(seed * 2 + with_own_rules)
        top = tmp_path / f"tree{seed}"
        make_tree(top, chance)
        folders = [top, *(each for each in top.iterdir() if each.is_dir() and not each.is_symlink())]
        root = chance.choice(folders[:3])  # a project may be a folder of its repository
        if with_own_rules:
            (root / ".amlignore").write_text(random_ignore_file(chance), newline="")
        git(top, "init", "-q")  # type: ignore[operator]
        if chance.random() < 0.3:
            (top / ".git/info/exclude").write_text(random_ignore_file(chance), newline="")
        by_git = list_files(root)
        with monkeypatch.context() as patch:
            patch.setattr(git_files, "_start", _no_git)
            by_walk = list_files(root)
        assert by_git.warnings == by_walk.warnings == ()
        assert sorted(by_walk.paths) == sorted(by_git.paths), _describe(seed, root, top)
        shutil.rmtree(top)


def _no_git(*_: object) -> None:
    raise git_files.GitMissingError


def _describe(seed: int, root: Path, top: Path) -> str:
    files = [*top.rglob(".gitignore"), *top.rglob(".amlignore"), top / ".git/info/exclude"]
    contents = [f"{each.relative_to(top)}: {each.read_text()!r}" for each in files if each.exists()]
    return f"seed {seed}, project {root.relative_to(top)}\n" + "\n".join(contents)
