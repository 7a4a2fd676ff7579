"""Runs that a branch brings into the `.holdfast/` that this account made: git writes over what it ignores."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = 242


def git(root: Path, *words: str) -> str:
    options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *options, *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def visited(bench):
    """A project with a run of its own, on a branch that has another one."""
    bench.write("t.py", "print('mine')\n")
    git(bench.root, "init", "-q")
    git(bench.root, "add", "t.py")
    git(bench.root, "commit", "-qm", "code")
    assert bench.submit("t.py").code == 0
    mine = bench.record()["run_id"]
    theirs = "rem_1795037999999"
    runs = bench.root / ".holdfast" / "runs"
    shutil.copytree(runs / mine, runs / theirs)
    git(bench.root, "checkout", "-qb", "hostile")
    git(bench.root, "add", "-f", f".holdfast/runs/{theirs}")
    git(bench.root, "commit", "-qm", "a run")
    git(bench.root, "checkout", "-q", "main")
    assert [each["run_id"] for each in bench_list(bench)] == [mine]
    git(bench.root, "checkout", "-q", "hostile")
    return bench, mine


def bench_list(bench):
    return json.loads(bench.run("history", "list", "-o", "json").out)


def test_runs_of_a_branch_are_not_shown_and_nobody_is_asked_about_them(visited):
    bench, mine = visited
    for words in (["history", "list"], ["status"], ["logs"], ["submit", "t.py"], ["history", "info", "-r", mine]):
        done = bench.run(*words)
        assert (done.code, done.out) == (PROJECT, ""), done.err


def test_the_command_that_is_named_leaves_the_own_runs(visited):
    bench, mine = visited
    named = bench.run("history", "list").err.splitlines()[1].partition("tracks: ")[2]
    subprocess.run(named, shell=True, cwd=bench.root, check=True)
    assert [each["run_id"] for each in bench_list(bench)] == [mine]


@pytest.mark.parametrize("form", ["2", "3", "4", "split"])
def test_every_form_of_gits_index_is_understood(visited, form):
    bench, _ = visited
    if form == "split":
        git(bench.root, "update-index", "--split-index")
    elif form == "3":
        git(bench.root, "update-index", "--skip-worktree", "t.py")  # needs a longer entry
    else:
        git(bench.root, "update-index", "--index-version", form)
    assert bench.run("history", "list").code == PROJECT


def test_a_linked_work_tree_is_one_too(visited, tmp_path):
    bench, mine = visited
    git(bench.root, "checkout", "-q", "main")
    other = tmp_path / "other"
    git(bench.root, "worktree", "add", "-qb", "mine-too", str(other), "main")
    assert bench.command("submit", "t.py", cwd=other).code == 0
    git(other, "checkout", "-q", "hostile")
    assert bench.command("history", "list", cwd=other).code == PROJECT
    assert [each["run_id"] for each in bench_list(bench)] == [mine]


def test_what_was_trusted_although_git_tracks_it_stays_trusted(visited, tmp_path):
    bench, _ = visited
    clone = tmp_path / "clone"
    git(bench.root, "clone", "-q", ".", str(clone))
    assert bench.command("history", "list", cwd=clone).code == PROJECT
    assert bench.command("project", "trust", "--yes", cwd=clone).code == 0
    assert bench.command("history", "list", cwd=clone).code == 0


def test_a_folder_of_that_name_elsewhere_in_the_repository_is_no_matter(bench):
    bench.write("t.py", "print(1)\n")
    bench.write("inner/.holdfast/runs/x/submission.json", "{}")
    git(bench.root, "init", "-q")
    git(bench.root, "add", "-f", ".")
    git(bench.root, "commit", "-qm", "code")
    assert bench.submit("t.py").code == 0


@pytest.mark.parametrize(
    "name", ["index-1.sqlite", "snapshot-cache.json", "runs/{run}/journal.jsonl", "runs/{run}/driver_log"]
)
def test_a_pipe_is_named_and_not_waited_for(bench, name):
    bench.write("t.py", "print(1)\n")
    assert bench.submit("t.py").code == 0
    run = bench.record()["run_id"]
    path = bench.root / ".holdfast" / name.format(run=run)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for words in (["logs", "-r", run], ["history", "info", "-r", run], ["history", "list"]):
        done = bench.run(*words, timeout=30)
        assert "Traceback" not in done.err
        if words[0] == "logs":
            assert done.code != 0, done.out
    assert path.is_fifo()


def test_nobody_else_can_enter_the_folder(bench):
    bench.write("t.py", "print(1)\n")
    before = os.umask(0)
    try:
        assert bench.submit("t.py").code == 0
    finally:
        os.umask(before)
    assert (bench.root / ".holdfast").stat().st_mode & 0o077 == 0
