"""A script that failed on a file that an ignore rule left out: which rule, and what lets the file in."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.history.run_folder import RunFolders
from holdfast.model import Ending, Reason, Run, Status, Submission
from holdfast.snapshots.ignore import list_files
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


@pytest.mark.parametrize(
    ("path", "rule", "lines"),
    [
        ("sub/x.csv", "`/x.csv` (sub/.gitignore:1)", ["!/sub/x.csv"]),
        ("data/train.csv", "`data/` (.gitignore:1)", ["!/data/"]),
        ("data/w.bin", "`data/` (.gitignore:1)", ["!/data/", "!/data/w.bin"]),
    ],
)
def test_the_lines_that_are_named_work_when_they_are_pasted(root, path, rule, lines):
    sentence = said(root, missing(path))
    assert f"`{path}` is in the project, but {rule} left it out of the snapshot." in sentence
    assert re.findall(r"(?:: |^)(!\S+)$", sentence, re.MULTILINE) == lines
    (root / ".amlignore").write_text("\n".join(lines))
    assert path in list_files(root).paths


def test_what_never_ships_is_not_given_a_line_that_cannot_work(root):
    sentence = said(root, missing(".holdfast/secret"))
    assert "`.holdfast` (built in)" in sentence
    assert sentence.endswith("No rule can let it in: copy it to another place in the project.")


@pytest.mark.parametrize("output", ["", missing("elsewhere.csv"), missing("x" * 5000), missing("sub/.gitignore"), "\0"])
def test_nothing_is_said_where_no_rule_is_the_cause(root, output):
    assert said(root, output) == ""


def test_nothing_is_said_about_a_run_that_did_not_fail_by_itself(root):
    for ending in (Ending(Reason.CANCELED), None):
        assert said(root, missing("sub/x.csv"), replace(FAILED, ending=ending)) == ""
