"""Which ignored files are named before a run, in which groups, and how little of a huge folder is looked at."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from holdfast.farside.system.own_files import CACHES as CACHES_OF_RUNS
from holdfast.project.include_wishes import as_typed, checked_include
from holdfast.snapshots import ignored_answers
from holdfast.snapshots.file_kinds import CACHES
from holdfast.snapshots.ignore import begin_listing, list_files
from holdfast.snapshots.ignored_answers import IgnoredAnswers, read_answers, write_answers
from holdfast.snapshots.ignored_groups import IgnoredGroup, LookLimits, find_ignored, group_of, options, summary
from holdfast.snapshots.include_globs import Include
from unit.snapshots.random_trees import make_tree

SEEDS = int(os.environ.get("HOLDFAST_FUZZ", "6"))
ANSWERS = '{"format": 1, "shipped": [%s], "named": [], "quiet": true}'


def look(root: Path, *known: str, limits: LookLimits = LookLimits(seconds=60.0)) -> list[IgnoredGroup]:  # noqa: B008
    return list(find_ignored(root, list_files(root).paths, known, limits).groups)


def shipped_by(root: Path, groups: list[IgnoredGroup]) -> set[str]:
    """What the options that are said take in."""
    globs = tuple(checked_include(as_typed(glob)) for each in groups for glob in each.globs)
    return set(begin_listing(root, include=Include(globs)).finish().paths) - set(list_files(root).paths)


def test_ignored_files_beside_shipped_ones_are_one_group_with_one_glob(tree, write):
    write("train.py", "data/chars/prepare.py", "data/chars/train.bin", "data/chars/val.bin", "data/chars/meta.pkl")
    (tree / ".gitignore").write_text("*.bin\n*.pkl\n")
    groups = look(tree)
    assert summary(groups) == "3 ignored files stay here: data/chars/{meta.pkl,train.bin,val.bin}, 57 B"
    assert options(groups[0].globs) == "--include 'data/chars/*'"
    assert options(groups[0].globs, "data") == "--include './chars/*'"
    assert shipped_by(tree, groups) == {f"data/chars/{name}" for name in ("meta.pkl", "train.bin", "val.bin")}


def test_an_ignored_folder_is_a_group_of_its_own(tree, write):
    write("train.py", "data/a/1.txt", "data/2.txt", "data/.env", "data/.venv/x", "data/__pycache__/x.pyc", "top.bin")
    (tree / ".gitignore").write_text("data/\n*.bin\n")
    groups = look(tree)
    assert [(each.shown(), each.count, each.globs) for each in groups] == [
        ("data/", 2, ("/data/",)),
        ("top.bin", 1, ("/top.bin",)),
    ]
    assert options([glob for each in groups for glob in each.globs]) == "--include data/ --include top.bin"
    assert shipped_by(tree, groups) == {"data/a/1.txt", "data/2.txt", "top.bin"}


def test_what_programs_make_again_and_what_is_secret_is_not_named(tree, write):
    write(
        *("train.py", "pkg/a.py", "pkg/a.cpython-311.so", "build/x", "dist/y", "venv/pyvenv.cfg", "mine/pyvenv.cfg"),
        *(
            "node_modules/a/b.js",
            ".tox/x",
            "x.egg-info/PKG-INFO",
            "run.log",
            "wandb/run/x",
            ".env",
            "key.pem",
            ".idea/x",
        ),
        *("env3/conda-meta/history", "tagged/CACHEDIR.TAG", "tagged/x", "emptied/__pycache__/x.pyc", "outputs/m.pt"),
    )
    (tree / ".gitignore").write_text("*\n!*.py\n!*/\nbuild/\nvenv/\nmine/\nenv3/\ntagged/\nemptied/\nwandb/\n")
    assert look(tree) == []


def test_what_amlignore_leaves_out_is_left_out_on_purpose(tree, write):
    write("train.py", "a.bin", "b.bin", "docs/x.md", "raw/1.txt")
    (tree / ".gitignore").write_text("*.bin\n")
    (tree / ".amlignore").write_text("/a.bin\n/raw/\n")
    assert [each.entries for each in look(tree)] == [("b.bin",)]


def test_a_glob_takes_in_nothing_else_that_is_ignored(tree, write):
    write("data/keep.py", *(f"data/{n}.bin" for n in range(5)), "data/raw/huge.txt", "data/notes.log", "data/[x].bin")
    (tree / ".gitignore").write_text("*.bin\n*.log\nraw/\n")
    files = next(each for each in look(tree) if each.names)
    assert files.globs == ("data/*.bin",)
    assert shipped_by(tree, [files]) == {f"data/{name}.bin" for name in (*range(5), "[x]")}
    assert files.shown() == "data/{0.bin,1.bin,2.bin,…}"


def test_many_groups_below_one_folder_are_one(tree, write):
    for number in range(8):
        write(f"data/{number}/a.py", f"data/{number}/train.bin", f"data/{number}/meta.pkl")
    (tree / ".gitignore").write_text("*.bin\n*.pkl\n")
    groups = look(tree)
    assert summary(groups).startswith("16 ignored files stay here: data/{0/meta.pkl,0/train.bin,1/meta.pkl,…}, ")
    assert groups[0].globs == ("data/**/*.pkl", "data/**/*.bin")
    assert len(shipped_by(tree, groups)) == 16


def test_a_group_that_was_named_is_not_named_again_before_it_changes(tree, write):
    write("train.py", "a.bin", "data/1.txt")
    (tree / ".gitignore").write_text("*.bin\ndata/\n")
    known = [entry for each in look(tree) for entry in each.entries]
    assert known == ["a.bin", "data/"]
    assert look(tree, *known) == []
    write("data/2.txt", "b.bin")
    assert [each.entries for each in look(tree, *known)] == [("a.bin", "b.bin")]


def test_a_huge_ignored_folder_is_counted_up_to_a_limit(tree, write, monkeypatch):
    write("train.py", *(f"data/{number // 10}/{number}" for number in range(100)), "node_modules/x")
    (tree / ".gitignore").write_text("data/\n")
    scanned = []
    real = os.scandir

    def scandir(path: str) -> object:
        scanned.append(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    (group,) = look(tree, limits=LookLimits(measured=30, seconds=60.0))
    assert group.is_part
    assert group.is_large
    assert summary([group]).startswith("At least ")
    assert len([each for each in scanned if isinstance(each, str)]) < 8, "the rest of the folder was not opened"


def test_folders_beyond_the_limits_are_not_looked_at(tree, write):
    write(*(f"{number}/a.py" for number in range(9)), *(f"{number}/x.bin" for number in range(9)))
    (tree / ".gitignore").write_text("*.bin\n")
    found = find_ignored(tree, list_files(tree).paths, (), LookLimits(folders=3))
    assert found.is_part
    assert [each.folder for each in found.groups] == ["0", "1"], "the top, and two below it"
    assert find_ignored(tree, list_files(tree).paths, (), LookLimits(listed=2)).is_part


def test_hostile_names_are_shown_and_shipped(tree, write):
    names = ("a\nb.bin", "\x1b[2J.bin", os.fsdecode(b"\xff.bin"), "it's.bin", "*.bin", " .bin")
    (tree / "d").mkdir()
    for name in names:
        (tree / "d" / name).write_bytes(b"")
    write("d/x.py")
    (tree / ".gitignore").write_text("*.bin\n")
    groups = look(tree)
    assert shipped_by(tree, groups) == {f"d/{name}" for name in names}


def test_answers_are_kept(tmp_path):
    assert read_answers(tmp_path) == IgnoredAnswers()
    answers = IgnoredAnswers(("data/chars/*", "/x.bin", "/*.pkl"), frozenset(("a", "b/")), True)
    assert write_answers(tmp_path, answers)
    assert read_answers(tmp_path) == answers


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"format": 2}', "[" * 100_000, "\0", '{"format": 1, "shipped": 7}', ANSWERS % '"../x"', ANSWERS % "7"],
    ids=range(8),
)
def test_damaged_answers_are_none(tmp_path, text):
    (tmp_path / ignored_answers.NAME).write_text(text)
    assert read_answers(tmp_path) == IgnoredAnswers()


def test_an_answer_that_the_disk_does_not_take_stops_nothing(tmp_path):
    assert not write_answers(tmp_path / "gone", IgnoredAnswers())


def test_what_a_run_makes_again_is_no_input_either():
    assert CACHES == CACHES_OF_RUNS


def test_in_random_trees_the_options_take_in_exactly_the_group(tmp_path):
    for seed in range(SEEDS):
        root = tmp_path / str(seed)
        make_tree(root, random.Random(seed))
        shipped = list_files(root).paths
        for each in find_ignored(root, shipped).groups:
            taken = shipped_by(root, [each])
            if not any("**" in glob for glob in each.globs):  # many groups as one take in a few more
                assert taken == set(each.entries) if each.names else len(taken) == each.count
            for path in list(taken)[:2]:
                globs = group_of(root, shipped, path).globs
                assert path in begin_listing(root, include=Include(globs)).finish().paths
