"""Links that come into a `.holdfast/` which its owner uses: none is followed, to read or to write."""

from __future__ import annotations

import shutil

import pytest

from holdfast.errors import StorageError
from holdfast.snapshots.take import take_snapshot
from kit.planted import GROUPS, PROJECT, git, plain, replace_by_link, tree

FILES = (
    *("index-1.sqlite", "index-1.sqlite-journal", "index-1.sqlite-wal", "index-1.sqlite-shm"),
    *("snapshot-cache.json", "project.json", "origin.json", ".gitignore"),
)
FOLDERS = ("runs", "objects", "locks", "exports", "hosts")
OF_RUN = (
    *("submission.json", "plan.json", "configuration.json", "host.json", "abandoned.json", "environment.json"),
    *("journal.jsonl", "driver_log", "control_log", "gpu.jsonl", "writer.lock", ".incoming.lock", "metrics/7-aa.jsonl"),
)
FOLDERS_OF_RUN = (".incoming", "metrics", "outputs", "uploads", ".")


def pairs(files: tuple[str, ...], folders: tuple[str, ...]) -> list[tuple[str, str]]:
    """Names, and where a link of that name leads."""
    return [*((name, "victim") for name in files), *((name, "Docs") for name in folders), (files[0], "nowhere")]


@pytest.mark.parametrize(("name", "target"), pairs(FILES, FOLDERS))
def test_a_link_that_git_puts_into_an_own_folder_is_not_followed(name, target, adopted, isolated, command):
    replace_by_link(adopted / ".holdfast" / name, isolated / target)
    before = tree(isolated)
    for words in GROUPS:
        done = command(*words)
        assert done.code == PROJECT and ".holdfast" in done.err, (words, done)
        assert "precious" not in done.out + done.err and "thesis" not in done.out + done.err
        assert tree(isolated) == before, words


def test_what_git_pulls_over_ignored_files_is_noticed(adopted, theirs, isolated, command):
    """Git takes ignored files for worthless and replaces them without a word."""
    shutil.rmtree(theirs / ".holdfast")
    (theirs / ".holdfast").mkdir()
    (theirs / ".holdfast" / "index-1.sqlite").symlink_to(isolated / "victim")
    git(theirs, "add", "--all", "--force")
    git(theirs, "commit", "-q", "-m", "x")
    git(adopted, "init", "-q")
    git(adopted, "fetch", "-q", str(theirs), "HEAD")
    git(adopted, "reset", "-q", "--hard", "FETCH_HEAD")
    assert (adopted / ".holdfast" / "index-1.sqlite").is_symlink()
    done = command("history", "list")
    assert done.code == PROJECT and "index-1.sqlite` is a link" in done.err
    assert (isolated / "victim").read_bytes() == b"precious\n"


@pytest.mark.parametrize(("name", "target"), pairs(OF_RUN, FOLDERS_OF_RUN))
def test_a_link_in_a_run_is_not_followed(name, target, adopted, isolated, command):
    (run,) = (adopted / ".holdfast" / "runs").iterdir()
    (run / "collected.json").unlink()  # so that it is written to
    journal = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    (run / "journal.jsonl").write_text("".join(journal[:-1]))
    assert command("history", "rebuild").code == 0
    replace_by_link(run / name if name != "." else run, isolated / target)
    before = plain(tree(isolated), isolated / "Docs", isolated / "victim")
    precious = (isolated / "victim").read_bytes()
    for words in GROUPS:
        if words[0] in ("submit", "project"):
            continue
        done = command(*words)
        assert "precious" not in done.out + done.err and "thesis" not in done.out + done.err, words
        assert plain(tree(isolated), isolated / "Docs", isolated / "victim") == before, words
        assert (isolated / "victim").read_bytes() == precious, words
    assert "is a link" in command("history", "info", "-r", "iris").err


def test_an_object_that_is_a_link_is_neither_read_nor_written(adopted, isolated):
    """Neither is a folder of them."""
    take_snapshot(adopted, adopted / ".holdfast")
    objects = adopted / ".holdfast" / "objects"
    (taken, other) = sorted(path for path in objects.rglob("*") if path.is_file())
    (adopted / ".holdfast" / "snapshot-cache.json").unlink()
    replace_by_link(taken, isolated / "victim")
    take_snapshot(adopted, adopted / ".holdfast")
    assert not taken.is_symlink(), "it was stored again"
    before = tree(isolated / "Docs")
    (adopted / ".holdfast" / "snapshot-cache.json").unlink()
    replace_by_link(other.parent, isolated / "Docs")
    with pytest.raises(StorageError, match="is a link"):
        take_snapshot(adopted, adopted / ".holdfast")
    assert tree(isolated / "Docs") == before
    assert (isolated / "victim").read_bytes() == b"precious\n"
