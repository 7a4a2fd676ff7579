"""The suggested lines let a file in when pasted into `.amlignore`, and leave out nothing that ships."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from holdfast.snapshots import inclusion
from holdfast.snapshots.ignore import explain, list_files
from holdfast.snapshots.inclusion import lines_to_ship
from unit.snapshots.random_trees import make_tree, random_ignore_file

SEEDS = int(os.environ.get("HOLDFAST_FUZZ", "6"))


def paste(project: Path, lines: tuple[str, ...]) -> None:
    with (project / ".amlignore").open("a", encoding="utf-8", newline="") as file:
        file.write("\n" + "".join(f"{line}\n" for line in lines))


def shipped(project: Path) -> set[str]:
    return set(list_files(project).paths)


def test_a_file_of_a_nested_ignore_file_is_let_in_by_its_own_path(tree, write):
    write("sub/x.csv", "x.csv", "sub/deep/y.csv")
    (tree / "sub" / ".gitignore").write_text("/x.csv\ndeep\n")
    assert lines_to_ship(tree, "sub/x.csv") == ("!/sub/x.csv",)
    assert lines_to_ship(tree, "sub/deep/y.csv") == ("!/sub/deep/",)
    paste(tree, ("!/sub/x.csv", "!/sub/deep/"))
    assert {"sub/x.csv", "sub/deep/y.csv"} <= shipped(tree)


def test_a_folder_and_a_rule_inside_it_need_two_lines(tree, write):
    write("data/x.csv", "data/notes.txt")
    (tree / ".gitignore").write_text("data/\n*.csv\n")
    lines = lines_to_ship(tree, "data/x.csv")
    assert lines == ("!/data/", "!/data/x.csv")
    paste(tree, lines)
    assert "data/x.csv" in shipped(tree)


def test_a_file_in_a_large_folder_is_let_in_alone(tree, write, monkeypatch):
    write("data/x.csv", "data/a/y.csv", "data/a/huge.bin", "data/b/huge.bin", "kept")
    (tree / ".gitignore").write_text("data/\n")
    monkeypatch.setattr(inclusion, "LARGE", 10)
    lines = lines_to_ship(tree, "data/a/y.csv")
    assert lines == ("!/data/", "/data/*", "!/data/a/", "/data/a/*", "!/data/a/y.csv")
    before = shipped(tree)
    paste(tree, lines)
    assert shipped(tree) == before | {"data/a/y.csv", ".amlignore"}


def test_a_folder_with_files_that_git_tracks_keeps_them(repository, git, write, monkeypatch):
    write("data/tracked.csv", "data/x.csv", "data/huge.bin")
    (repository / ".gitignore").write_text("data/\n")
    git(repository, "add", "-f", "data/tracked.csv")
    monkeypatch.setattr(inclusion, "LARGE", 10)  # leaving huge.bin out again would cost the tracked file
    assert lines_to_ship(repository, "data/x.csv") == ("!/data/",)
    paste(repository, ("!/data/",))
    assert {"data/tracked.csv", "data/x.csv"} <= shipped(repository)


def test_a_file_of_a_repository_inside_is_let_in(tree, git, write):
    write("lib/x.csv", "lib/data/y.csv", "lib/kept", "third/lib/z")
    for name in ("lib", "third/lib"):
        git(tree / name, "init", "-q")
    (tree / "lib" / ".gitignore").write_text("*.csv\ndata/\n")
    (tree / ".gitignore").write_text("third/\n")
    wanted = ("lib/x.csv", "lib/data/y.csv", "third/lib/z")
    assert explain(tree, "third/lib/z") is not None
    for path in wanted:
        assert path not in shipped(tree)
        paste(tree, lines_to_ship(tree, path))
        assert path in shipped(tree)


def test_a_virtual_environment_and_a_built_in_folder_come_back(tree, write):
    write("env/pyvenv.cfg", "env/lib/x.py", "docs/a.md", "p/__pycache__/m.pyc")
    for path in ("env/lib/x.py", "docs/a.md", "p/__pycache__/m.pyc"):
        paste(tree, lines_to_ship(tree, path))
        assert path in shipped(tree)


def test_a_whole_folder_is_let_in(tree, write):
    write("vendor/utils/__init__.py", "vendor/utils/a.py")
    (tree / ".gitignore").write_text("utils/\n")
    assert lines_to_ship(tree, "vendor/utils") == ("!/vendor/utils/",)


def test_a_link_is_let_in_and_not_what_lies_behind_it(tree, write):
    write("there/x.csv")
    (tree / "data").symlink_to("there")
    (tree / ".gitignore").write_text("data\n")
    assert explain(tree, "data/x.csv") is not None
    assert lines_to_ship(tree, "data/x.csv") == ("!/data",)
    paste(tree, ("!/data",))
    assert "data" in shipped(tree)
    assert explain(tree, "data/x.csv") is None


def test_what_never_ships_has_no_line(tree, git, write):
    write("lib/x", ".holdfast/runs/x")
    git(tree / "lib", "init", "-q")
    for path in (".holdfast/runs/x", "lib/.git/config"):
        assert explain(tree, path) is not None
        assert lines_to_ship(tree, path) == ()


def test_a_name_that_cannot_be_typed_gets_a_line_that_can(tree):
    names = ["a b.csv", " x.csv ", "new\nline.csv", "end.csv\r", "#x.csv", "!x.csv", "[x].csv", "é.csv", "\\x*.csv"]
    names.append(os.fsdecode(b"caf\xe9.csv"))
    for name in names:
        (tree / name).write_text("")
    (tree / ".gitignore").write_text("*.csv\n*.csv*\n")
    for name in names:
        lines = lines_to_ship(tree, name)
        assert len(lines) == 1 and lines[0].isprintable()
        paste(tree, lines)
        assert name in shipped(tree)


@pytest.mark.parametrize("is_repository", [True, False])
def test_on_random_trees_the_lines_let_the_file_in(tmp_path, git, is_repository):
    for seed in range(SEEDS):
        chance = random.Random(seed * 2 + is_repository)
        root = tmp_path / f"tree{seed}"
        make_tree(root, chance)
        (root / ".amlignore").write_text(random_ignore_file(chance), newline="")
        if is_repository:
            git(root, "init", "-q")
            if chance.random() < 0.5:
                git(root, "add", "-f", *[each.name for each in root.iterdir() if each.name != ".git"][:2])
        files = {each.relative_to(root).as_posix() for each in root.rglob("*") if not each.is_dir()}
        for _ in range(2):
            before = shipped(root)
            left_out = sorted(path for path in files - before if not path.startswith(".git/"))
            if left_out:
                path = chance.choice(left_out)
                assert explain(root, path) is not None, (seed, path)
                lines = lines_to_ship(root, path)
                paste(root, lines)
                assert before | {path} <= shipped(root), (seed, path, lines)
        shutil.rmtree(root)
