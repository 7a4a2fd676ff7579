"""The lines that let a file in do so when they are pasted into `.amlignore`, and cost nothing that ships."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.snapshots import inclusion
from holdfast.snapshots.ignore import explain, list_files
from holdfast.snapshots.inclusion import lines_to_ship
from unit.snapshots.random_trees import make_tree, random_ignore_file

Write = Callable[..., None]
Git = Callable[..., str]
SEEDS = int(os.environ.get("HOLDFAST_FUZZ", "8"))


@pytest.fixture(params=["git", "walk"])
def either(request: pytest.FixtureRequest, project: Path, git: Git) -> str:
    if request.param == "git":
        git(project, "init", "-q")
    return str(request.param)


def paste(project: Path, lines: tuple[str, ...]) -> None:
    with (project / ".amlignore").open("a", encoding="utf-8", newline="") as file:
        file.write("\n" + "".join(f"{line}\n" for line in lines))


def shipped(project: Path) -> set[str]:
    return set(list_files(project).paths)


def test_a_file_of_a_nested_ignore_file_is_let_in_by_its_own_path(project: Path, either: str, write: Write) -> None:
    write("sub/x.csv", "x.csv", "sub/deep/y.csv")
    (project / "sub" / ".gitignore").write_text("/x.csv\ndeep\n")
    assert lines_to_ship(project, "sub/x.csv") == ("!/sub/x.csv",)
    assert lines_to_ship(project, "sub/deep/y.csv") == ("!/sub/deep/",)
    paste(project, ("!/sub/x.csv", "!/sub/deep/"))
    assert {"sub/x.csv", "sub/deep/y.csv"} <= shipped(project)


def test_a_folder_and_a_rule_inside_it_need_two_lines(project: Path, either: str, write: Write) -> None:
    write("data/x.csv", "data/notes.txt")
    (project / ".gitignore").write_text("data/\n*.csv\n")
    lines = lines_to_ship(project, "data/x.csv")
    assert lines == ("!/data/", "!/data/x.csv")
    paste(project, lines)
    assert "data/x.csv" in shipped(project)


def test_a_file_in_a_large_folder_is_let_in_alone(
    project: Path, either: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("data/x.csv", "data/a/y.csv", "data/a/huge.bin", "data/b/huge.bin", "kept")
    (project / ".gitignore").write_text("data/\n")
    monkeypatch.setattr(inclusion, "LARGE", 10)
    lines = lines_to_ship(project, "data/a/y.csv")
    assert lines == ("!/data/", "/data/*", "!/data/a/", "/data/a/*", "!/data/a/y.csv")
    before = shipped(project)
    paste(project, lines)
    assert shipped(project) == before | {"data/a/y.csv", ".amlignore"}


def test_a_folder_with_files_that_git_tracks_keeps_them(
    project: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "init", "-q")
    write("data/tracked.csv", "data/x.csv", "data/huge.bin")
    (project / ".gitignore").write_text("data/\n")
    git(project, "add", "-f", "data/tracked.csv")
    monkeypatch.setattr(inclusion, "LARGE", 10)  # leaving huge.bin out again would cost the tracked file
    assert lines_to_ship(project, "data/x.csv") == ("!/data/",)
    paste(project, ("!/data/",))
    assert {"data/tracked.csv", "data/x.csv"} <= shipped(project)


def test_a_file_of_a_repository_inside_is_let_in(project: Path, either: str, git: Git, write: Write) -> None:
    write("lib/x.csv", "lib/data/y.csv", "lib/kept", "third/lib/z")
    for name in ("lib", "third/lib"):
        git(project / name, "init", "-q")
    (project / "lib" / ".gitignore").write_text("*.csv\ndata/\n")
    (project / ".gitignore").write_text("third/\n")
    wanted = ("lib/x.csv", "lib/data/y.csv", "third/lib/z")
    assert explain(project, "third/lib/z") is not None
    for path in wanted:
        assert path not in shipped(project)
        paste(project, lines_to_ship(project, path))
        assert path in shipped(project)


def test_a_virtual_environment_and_a_built_in_folder_come_back(project: Path, either: str, write: Write) -> None:
    write("env/pyvenv.cfg", "env/lib/x.py", "docs/a.md", "p/__pycache__/m.pyc")
    for path in ("env/lib/x.py", "docs/a.md", "p/__pycache__/m.pyc"):
        paste(project, lines_to_ship(project, path))
        assert path in shipped(project)


def test_a_whole_folder_is_let_in(project: Path, either: str, write: Write) -> None:
    write("vendor/utils/__init__.py", "vendor/utils/a.py")
    (project / ".gitignore").write_text("utils/\n")
    assert lines_to_ship(project, "vendor/utils") == ("!/vendor/utils/",)


def test_a_link_is_let_in_and_not_what_lies_behind_it(project: Path, either: str, write: Write) -> None:
    write("there/x.csv")
    (project / "data").symlink_to("there")
    (project / ".gitignore").write_text("data\n")
    assert explain(project, "data/x.csv") is not None
    assert lines_to_ship(project, "data/x.csv") == ("!/data",)
    paste(project, ("!/data",))
    assert "data" in shipped(project)
    assert explain(project, "data/x.csv") is None


def test_what_never_ships_has_no_line(project: Path, either: str, git: Git, write: Write) -> None:
    write("lib/x", ".holdfast/runs/x")
    git(project / "lib", "init", "-q")
    for path in (".holdfast/runs/x", "lib/.git/config"):
        assert explain(project, path) is not None
        assert lines_to_ship(project, path) == ()


def test_a_name_that_cannot_be_typed_gets_a_line_that_can(project: Path, either: str) -> None:
    names = ["a b.csv", " x.csv ", "new\nline.csv", "end.csv\r", "#x.csv", "!x.csv", "[x].csv", "é.csv", "\\x*.csv"]
    names.append(os.fsdecode(b"caf\xe9.csv"))
    for name in names:
        (project / name).write_text("")
    (project / ".gitignore").write_text("*.csv\n*.csv*\n")
    for name in names:
        lines = lines_to_ship(project, name)
        assert len(lines) == 1 and lines[0].isprintable()
        paste(project, lines)
        assert name in shipped(project)


@pytest.mark.parametrize("is_repository", [True, False])
def test_on_random_trees_the_lines_let_the_file_in(tmp_path: Path, git: Git, is_repository: bool) -> None:
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
