"""A script that failed on a file that an ignore rule left out: which rule, and what lets the file in."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.codec import encode
from holdfast.given_files import GivenData, GoneOnFrom
from holdfast.history.run_folder import RunFolders
from holdfast.model import Ending, Reason, Run, Status, Submission
from holdfast.project.include_wishes import checked_include
from holdfast.snapshots import ignored_groups
from holdfast.snapshots.ignore import begin_listing
from holdfast.snapshots.include_globs import Include
from holdfast.snapshots.warnings import Amount
from holdfast.workbench.following.missing_file import missing_file_sentence

SUBMISSION = Submission("iris_1", 1, "p", "iris", "train.py", (), "local", "local", "local", "a" * 64, 1.0, "g")
FAILED = Run(SUBMISSION, Status.FAILED, Ending(Reason.EXIT_CODE, code=1))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "data/train.csv": "",
        "sub/x.csv": "",
        "sub/.gitignore": "/x.csv\n",
        ".gitignore": "data/\n*.bin\n",
        "data/w.bin": "",
        ".holdfast/secret": "",
    }
    for name, text in files.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    return tmp_path / "project"


def said(root: Path, output: str, run: Run = FAILED) -> str:
    folder = run_folder(root)
    (folder / "driver_log").write_text(output)
    return missing_file_sentence(root, RunFolders(folder.parents[1]), run)


def run_folder(root: Path) -> Path:
    folder = root.parent / "state" / "runs" / SUBMISSION.run_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def missing(path: str) -> str:
    return f"Traceback\nFileNotFoundError: [Errno 2] No such file or directory: '{path}'\n"


def test_an_ignored_file_is_told_of_with_its_rule_and_all_that_stayed_with_it(root):
    assert said(root, missing("data/w.bin")) == (
        "`data/w.bin` is ignored by `data/` (.gitignore:1), so it stayed here with all of `data` (2 files, 0 B).\n"
        "Ship them: holdfast submit --include data/ train.py"
    )


@pytest.mark.parametrize(
    ("path", "globs"),
    [("sub/x.csv", ["sub/x.csv"]), ("data/train.csv", ["data/"]), ("chars/a.bin", ["chars/*"]), ("x.bin", ["x.bin"])],
)
def test_the_command_that_is_named_ships_the_file_with_all_beside_it(root, path, globs):
    for name in ("chars/prepare.py", "chars/a.bin", "chars/b.bin", "x.bin"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
    words = shlex.split(said(root, missing(path)).partition("holdfast submit ")[2])
    assert words == [*(word for glob in globs for word in ("--include", glob)), "train.py"]
    include = Include(tuple(map(checked_include, globs)))
    paths = begin_listing(root, include=include).finish().paths
    assert path in paths
    assert "chars/b.bin" in paths or not path.startswith("chars/")


@pytest.mark.parametrize(
    "words",
    [
        'OSError: Not found: "data/w.bin": No such file or directory Error #2',
        "RuntimeError: Parent directory data/w.bin does not exist.",
        "ValueError: File not found: filepath=data/w.bin. Please ensure the file is an accessible zip file.",
        "terminate called: what(): cannot open data/w.bin",
        "[ WARN:0@0.02] imread_('data/w.bin'): can't open/read file: check file path/integrity",
        "tensorflow: NOT_FOUND: data/w.bin; No such file or directory [Op:ReadFile]",
        "sh: 1: cannot open data/w.bin: No such file",
        "missing data/w.bin, run prepare.py first",
        "[Errno 2] Unable to open file (unable to open file: name = 'data/w.bin', errno = 2, error message = 'x')",
    ],
)
def test_libraries_say_it_in_their_own_words(root, words):
    assert said(root, f"Traceback\n{words}\n").endswith("--include data/ train.py")


def test_a_name_in_the_output_that_nothing_misses_is_no_cause(root):
    assert said(root, "reading data/w.bin\nZeroDivisionError: division by zero\n") == ""


def test_the_command_has_the_words_folder_and_globs_of_the_run(root):
    (run_folder(root) / "configuration.json").write_text('{"run_configuration": {"include": ["/a b/", "data/x/*"]}}')
    submission = replace(SUBMISSION, folder="sub", script_name="sub/t.py", arguments=("-n", "a b"), target="box")
    submission = replace(submission, earlier=GoneOnFrom("iris_0", "out"), data=(GivenData("raw", "/d/raw"),))
    found = said(root, missing("../data/w.bin"), replace(FAILED, submission=submission))
    globs = "--include '../a b/' --include '../data/x/*' --include ../data/"
    command = f"holdfast submit -t box --from iris_0:out --data /d/raw:raw {globs} t.py -n 'a b'"
    assert found.endswith(f": {command}")


def test_a_large_folder_is_offered_as_data(root, monkeypatch):
    monkeypatch.setattr(ignored_groups, "BETTER_AS_DATA", Amount(bytes=0, files=1))
    assert said(root, missing("data/w.bin")).endswith("holdfast submit --data data:data train.py")


def test_a_file_that_an_earlier_run_wrote_names_the_newest_such_run(root):
    for number in (1, 2, 3):
        home = run_folder(root).parent / f"iris_{number + 1521077190506}"
        (home / "files" / "out").mkdir(parents=True)
        if number < 3:
            (home / "files" / "out" / "ckpt.pt").write_text("x")
    (home / "files" / "out" / "ckpt.pt").write_text("")
    assert said(root, missing("out/ckpt.pt")) == (
        "Run iris_1521077190508 wrote `out/ckpt.pt`.\nGo on from it: holdfast submit --from iris_1521077190508 train.py"
    )


def test_going_on_from_a_run_takes_the_ignored_files_and_the_data_that_it_was_given(root):
    """A script that samples from the model may do without the vocabulary, and print something else."""
    writer = run_folder(root).with_name("iris_0")
    (writer / "files" / "out").mkdir(parents=True)
    (writer / "files" / "out" / "ckpt.pt").write_text("x")
    (writer / "configuration.json").write_text('{"run_configuration": {"include": ["data/*", "a.bin"]}}')
    earlier = replace(SUBMISSION, run_id="iris_0", data=(GivenData("raw", "/d/raw"), GivenData("new", "/d/old")))
    (writer / "submission.json").write_text(json.dumps(encode(earlier)))
    (run_folder(root) / "configuration.json").write_text('{"run_configuration": {"include": ["a.bin"]}}')
    run = replace(FAILED, submission=replace(SUBMISSION, data=(GivenData("new", "/d/new"),)))
    command = said(root, missing("out/ckpt.pt"), run).partition("Go on from it: ")[2]
    assert command == (
        "holdfast submit --data /d/new:new --include a.bin --from iris_0 --include 'data/*' --data /d/raw:raw train.py"
    )


def test_a_module_is_nothing_that_a_run_wrote(root):
    home = run_folder(root).parent / "iris_1521077190507" / "files" / "wandb"
    home.mkdir(parents=True)
    (home / "x").write_text("x")
    assert "--from" not in said(root, "Traceback\nModuleNotFoundError: No module named 'wandb'\n")
    (root / ".gitignore").write_text("_version.py\n")
    (root / "_version.py").write_text("")
    lacking = "Traceback\nModuleNotFoundError: No module named '_version'\n"
    assert said(root, lacking).endswith("--include _version.py train.py")


def test_beside_a_file_that_is_here_a_newer_one_of_a_run_is_named(root):
    home = run_folder(root).parent / "iris_1521077190507" / "files" / "data"
    home.mkdir(parents=True)
    (home / "w.bin").write_text("x")
    os.utime(home / "w.bin", (10, 10))
    older = said(root, missing("data/w.bin"))
    os.utime(root / "data/w.bin", (5, 5))
    newer = said(root, missing("data/w.bin"))
    assert [each.rpartition(": ")[2] for each in newer.splitlines()] == [
        *(each.rpartition(": ")[2] for each in older.splitlines()),
        "Run iris_1521077190507 wrote `data/w.bin`.",
        "holdfast submit --from iris_1521077190507 train.py",
    ]


def test_a_file_that_stayed_on_the_machine_of_a_run_counts_too(root):
    home = run_folder(root).parent / "iris_1521077190507"
    home.mkdir(parents=True)
    left = {"files": [["out/big.pt", 9]], "count": 1, "size": 9}
    (home / "collected.json").write_text(json.dumps({"format": 1, "left": left}))
    assert "--from iris_1521077190507" in said(root, missing("out/big.pt"))


def test_a_path_of_this_machine_is_offered_as_data(root, tmp_path):
    (tmp_path / "sets" / "tiny").mkdir(parents=True)
    (tmp_path / "sets" / "tiny" / "x.csv").write_text("")
    (tmp_path / "beside.csv").write_text("")
    place = tmp_path / "sets" / "tiny"
    assert said(root, missing(f"{place}/x.csv")) == (
        f"`{place}/x.csv` is on this machine, but not in the run.\n"
        f"Send it, and have the script read `tiny/x.csv`: holdfast submit --data {place}:tiny train.py"
    )
    assert said(root, missing("../beside.csv")).endswith(f"--data {tmp_path}/beside.csv:beside.csv train.py")
    assert said(root, missing("/usr/bin/env")) == ""


def test_a_folder_without_files_that_ship_is_told_of(root):
    (root / "logs").mkdir()
    for path in ("logs/a.txt", "logs"):
        assert "touch logs/.gitkeep" in said(root, missing(path))


def test_a_name_in_another_case_is_told_of(root):
    assert "`sub/.gitignore`, not `Sub/.gitignore`" in said(root, missing("Sub/.gitignore"))


def test_a_tracked_file_that_was_deleted_here_is_restored_by_git(root):
    (root / "gone.csv").write_text("")
    for words in (["init", "-q"], ["add", "gone.csv"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "gone.csv").unlink()
    assert said(root, missing("gone.csv")).endswith("git restore gone.csv")


def test_a_secret_ships_by_its_own_name_only(root):
    (root / ".gitignore").write_text(".env\n*.bin\n")
    for name in (".env", "a.bin"):
        (root / name).write_text("")
    assert said(root, missing(".env")).endswith("--include .env train.py")
    assert said(root, missing("a.bin")).endswith("--include a.bin train.py")


def test_what_never_ships_is_not_given_a_line_that_cannot_work(root):
    sentence = said(root, missing(".holdfast/secret"))
    assert "`.holdfast` (built in)" in sentence
    assert sentence.endswith("That name can never ship: copy it to another place in the project.")


@pytest.mark.parametrize("output", ["", missing("elsewhere.csv"), missing("x" * 5000), missing("sub/.gitignore"), "\0"])
def test_nothing_is_said_where_no_rule_is_the_cause(root, output):
    assert said(root, output) == ""


def test_nothing_is_said_about_a_run_that_did_not_fail_by_itself(root):
    for ending in (Ending(Reason.CANCELED), None):
        assert said(root, missing("sub/x.csv"), replace(FAILED, ending=ending)) == ""
