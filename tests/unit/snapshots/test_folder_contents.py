"""Files of a folder are named by their contents where they lie, and what changed meanwhile is noticed."""

import json
import os

import pytest

from holdfast.errors import ProjectError
from holdfast.snapshots.folder_contents import PlacedContents, list_folder, read_contents


def read(folder, state=None):
    reading = read_contents(list_folder(str(folder)), state)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "tiny"
    (found / "b").mkdir(parents=True)
    (found / "b" / "x.bin").write_bytes(b"data" * 1000)
    (found / "a").write_text("a")
    (found / "link").symlink_to("b/x.bin")
    for path in (found / "b" / "x.bin", found / "a"):
        os.utime(path, ns=(1, 1))
    return found


def test_a_folder_has_a_manifest_and_each_content_is_read_where_it_lies(folder):
    found = read(folder)
    assert [row[:2] for row in json.loads(found.manifest)["files"]] == [["a", "f"], ["b/x.bin", "f"], ["link", "l"]]
    digest = json.loads(found.manifest)["files"][1][2]
    with PlacedContents(found).open(digest) as source:
        assert source.read() == b"data" * 1000


def test_what_was_read_is_not_read_again_until_it_changes(folder, tmp_path):
    first = read(folder, tmp_path / "state")
    (tmp_path / "later").touch()
    read(folder, tmp_path / "state")  # now the files are older than the cache
    again = read(folder, tmp_path / "state")
    assert (again.digest, again.was_read) == (first.digest, 0)
    (folder / "a").write_text("b")
    changed = read(folder, tmp_path / "state")
    assert changed.digest != first.digest and changed.was_read == 1


def test_a_file_that_changes_before_it_is_sent_is_not_sent(folder):
    found = read(folder)
    digest = json.loads(found.manifest)["files"][0][2]
    (folder / "a").write_text("another")
    with pytest.raises(ProjectError, match="was changed"):
        PlacedContents(found).open(digest)


def test_what_no_run_could_use_is_refused(folder, tmp_path):
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(ProjectError, match="outside the folder"):
        read(folder)
    (folder / "out").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(ProjectError, match="pipe"):
        read(folder)
