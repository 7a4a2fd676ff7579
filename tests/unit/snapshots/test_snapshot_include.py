"""Files that ship although a rule leaves them out: what a glob takes in, and what no glob does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import ProjectError, UsageError
from holdfast.project.include_wishes import as_typed, checked_include
from holdfast.snapshots.file_kinds import is_made_again, is_secret
from holdfast.snapshots.ignore import begin_listing
from holdfast.snapshots.include_globs import Include
from holdfast.snapshots.take import Selection, take_snapshot

IGNORED = "*.bin\n*.pkl\n/data/raw/\n.env\nsecrets/\n*.pem\n.venv/\nlink\n"
FILES = (
    *("train.py", "data/chars/prepare.py", "data/chars/train.bin", "data/chars/meta.pkl", "data/words/train.bin"),
    *("data/raw/a/1.txt", "data/raw/.cache/x", "data/raw/key.pem", "top.bin", ".env", "secrets/token", ".venv/a.bin"),
    "data/raw/.git/config",
)


@pytest.fixture
def project_with_data(tree, write) -> Path:
    write(*FILES)
    (tree / ".gitignore").write_text(IGNORED)
    return Path(tree)


def added(root: Path, *globs: str, **others: tuple[str, ...]) -> set[str]:
    include = Include(globs, **others)
    return set(begin_listing(root, include=include).finish().paths) - set(begin_listing(root).finish().paths)


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("data/chars/*", {"data/chars/train.bin", "data/chars/meta.pkl"}),
        ("data/*/train.bin", {"data/chars/train.bin", "data/words/train.bin"}),
        ("*.bin", {"data/chars/train.bin", "data/words/train.bin", "top.bin"}),
        ("/*.bin", {"top.bin"}),
        ("data/raw/", {"data/raw/a/1.txt"}),
        ("data/raw", {"data/raw/a/1.txt"}),
        ("data/**", {"data/chars/train.bin", "data/chars/meta.pkl", "data/words/train.bin", "data/raw/a/1.txt"}),
        ("data/raw/*.pem", {"data/raw/key.pem"}),
        (".env", {".env"}),
        (".venv/", {".venv/a.bin"}),
        ("data/raw/.cache/x", {"data/raw/.cache/x"}),
    ],
)
def test_a_glob_takes_in_files_that_a_rule_leaves_out(project_with_data, glob, paths):
    assert added(project_with_data, glob) == paths


@pytest.mark.parametrize("glob", ["dta/*", "data/raw/.git/config", ".git/", "data/chars/*.png"])
def test_a_typed_glob_that_takes_in_nothing_is_an_error(project_with_data, glob):
    with pytest.raises(ProjectError, match="No file matches") as raised:
        added(project_with_data, glob)
    assert "quote it" in raised.value.hint


def test_a_secret_ships_only_if_a_typed_glob_names_it(project_with_data):
    assert added(project_with_data, written=("data/raw/*.pem", ".env"), agreed=(".env",)) == set()
    listing = begin_listing(project_with_data, include=Include(("secrets/", "*"))).finish()
    assert not {".env", "secrets/token", "data/raw/key.pem"} & set(listing.paths)
    assert "To ship it: --include secrets/token" in {each.remedy for each in listing.warnings}


def test_amlignore_is_stronger_than_an_answer_and_weaker_than_what_is_typed(project_with_data):
    (project_with_data / ".amlignore").write_text("/data/chars/*.bin\n")
    assert added(project_with_data, agreed=("data/chars/*",)) == {"data/chars/meta.pkl"}
    assert added(project_with_data, "data/chars/*") == {"data/chars/meta.pkl", "data/chars/train.bin"}


def test_a_glob_of_the_configuration_that_takes_in_nothing_is_a_warning(project_with_data):
    listing = begin_listing(project_with_data, include=Include(written=("dta/",), agreed=("gone/",))).finish()
    assert [each.message for each in listing.warnings] == ["`Include: dta/` matches no file here."]


def test_a_link_ships_as_a_link_and_nothing_behind_it(project_with_data, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.bin").write_text("")
    (project_with_data / "link").symlink_to(tmp_path / "elsewhere")
    assert added(project_with_data, "link/*") == {"link"}
    with pytest.raises(ProjectError) as raised:
        added(project_with_data, "link/")
    assert raised.value.hint == f"To send that: --data {tmp_path}/elsewhere:link"


def test_a_snapshot_with_included_files_is_not_taken_for_the_one_without(project_with_data, tmp_path):
    state, selection = tmp_path / "state", Selection(None, Include(("data/chars/*",)))
    digests = [take_snapshot(project_with_data, state, None, each).digest for each in (None, selection) * 2]
    assert digests[0] == digests[2] != digests[1] == digests[3]
    (project_with_data / "data/chars/train.bin").write_text("changed")
    assert take_snapshot(project_with_data, state, None, selection).digest not in digests


@pytest.mark.parametrize(
    ("typed", "folder", "glob"),
    [
        ("data/*", "", "data/*"),
        ("./data//chars/", "", "data/chars/"),
        ("*.bin", "", "*.bin"),
        ("./*.bin", "", "/*.bin"),
        ("*.bin", "sub/a", "sub/a/**/*.bin"),
        ("./*.bin", "sub", "sub/*.bin"),
        ("../data/", "sub", "/data/"),
        ("../x.bin", "sub", "/x.bin"),
        ("d/", "a[1]", "a\\[1]/d/"),
        ("*.d/", "a", "a/**/*.d/"),
        ("data", "", "/data"),
    ],
)
def test_a_glob_is_meant_from_where_it_was_typed(typed, folder, glob):
    assert checked_include(typed, folder) == glob
    assert checked_include(as_typed(glob, folder), folder) == checked_include(as_typed(glob)) == glob


@pytest.mark.parametrize("typed", ["", "/", "/etc/passwd", "~/x", "../x", "a/../../x", "a\nb", ".", "\x1b[2J"])
def test_a_glob_that_leads_out_of_the_project_is_refused(typed):
    with pytest.raises(UsageError):
        checked_include(typed)


def test_names_of_hostile_files_are_taken_in_as_they_are(tree, write):
    names = ("d/!a", "d/#b", "d/c\nd", os.fsdecode(b"d/\xff"), "d/[x]", "d/\x1b[2J")
    (tree / "d").mkdir()
    for name in names:
        (tree / name).write_bytes(b"")
    write("kept")
    (tree / ".gitignore").write_text("d/\n")
    assert added(tree, "d/") == set(names)
    assert added(tree, "d/\\[x]") == {"d/[x]"}


@pytest.mark.parametrize(
    "name", [".env", "id_rsa", "a.pem", "*.pem", ".env*", "credentials.json", "Secrets.yaml", ".aws"]
)
def test_a_secret_is_known_by_its_name(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["train.bin", "meta.pkl", "tokenizer.json", "keys.csv", "*", "data", "secretary.csv"])
def test_data_is_no_secret(name):
    assert not is_secret(name)
    assert not is_made_again(name)
