"""Which files of a run come home by themselves."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.project.output_wishes import checked_glob
from holdfast.workbench.following.output_choice import Globs, staying
from holdfast.written_files import UNLIMITED, FileSize, OutputWishes, path_at_home

FILES = [
    FileSize("outputs/model.bin", 900),
    FileSize("a.pt", 50),
    FileSize("ckpt/b.pt", 10),
    FileSize("ckpt/c.txt", 40),
    FileSize("empty", 0),
    FileSize("outputs.txt", 60),
]


@pytest.mark.parametrize(
    ("globs", "limit", "expected"),
    [
        ((), UNLIMITED, set()),
        ((), 160, set()),
        ((), 159, {"outputs.txt"}),
        ((), 50, {"a.pt", "outputs.txt"}),
        ((), 0, {"a.pt", "ckpt/b.pt", "ckpt/c.txt", "outputs.txt"}),
        (("ckpt/",), UNLIMITED, {"a.pt", "empty", "outputs.txt"}),
        (("ckpt/", "empty"), 10, {"a.pt", "ckpt/c.txt", "outputs.txt"}),
        (("*.pt",), UNLIMITED, {"ckpt/c.txt", "empty", "outputs.txt"}),
        (("outputs/",), UNLIMITED, {"a.pt", "ckpt/b.pt", "ckpt/c.txt", "empty", "outputs.txt"}),
    ],
)
def test_the_smallest_of_the_wanted_files_come_home_and_all_of_outputs(globs, limit, expected):
    stays = staying(FILES, OutputWishes(globs, limit))
    assert {each.path for each in stays} == expected
    assert all(each in FILES for each in stays)


@pytest.mark.parametrize(("glob", "path"), [("!a", "!a"), ("#a", "d/#a"), ("a\nb", "a\nb"), ("**/x", "d/x")])
def test_a_glob_is_no_comment_and_no_exception(glob, path):
    assert Globs([glob]).take_in(path)
    assert not Globs([glob]).take_in("other")


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        ((), {"../logs/x"}),
        (("../logs/",), {"../../y", "m.pt"}),
        (("../",), {"m.pt"}),
        (("*.pt",), {"../logs/x", "../../y"}),
        (("logs/",), {"../../y", "m.pt"}),
    ],
)
def test_what_lies_beside_the_project_counts_as_all_else(globs, expected):
    files = [FileSize("../logs/x", 40), FileSize("../../y", 10), FileSize("m.pt", 20)]
    assert {each.path for each in staying(files, OutputWishes(globs, 60))} == expected


def test_files_of_the_project_have_a_folder_of_their_own_at_home():
    paths = ("outputs/a", "outputs.txt", "outputs", "uploads/x", "a/outputs/b")
    assert [path_at_home(each) for each in paths] == ["outputs/a", *(f"files/{each}" for each in paths[1:])]


@pytest.mark.parametrize("glob", ["../logs/", "../", "../../*.pt"])
def test_a_glob_may_begin_beside_the_project(glob):
    assert checked_glob(glob) == glob


@pytest.mark.parametrize("glob", ["..", "a/../b", "../a/..", "/", "../\n"])
def test_a_glob_stays_where_it_begins(glob):
    with pytest.raises(UsageError):
        checked_glob(f"{glob}x" if glob.endswith("\n") else glob)
