"""Files below a folder that a script can write to."""

import errno
import os

import pytest

from holdfast.farside.system.nofollow import (
    open_below,
    read_below,
    readlink_below,
    remove_at,
    stat_below,
    walk_below,
)
from holdfast.farside.system.refusal import Refused


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "run"
    (made / "metrics").mkdir(parents=True)
    (made / "metrics" / "m.jsonl").write_bytes(b"{}\n")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_bytes(b"secret")
    return made


def test_a_file_in_a_folder_below_is_read(folder):
    assert read_below(str(folder), "metrics/m.jsonl", 100) == b"{}\n"
    assert stat_below(str(folder), "metrics/m.jsonl").st_size == 3


def test_a_link_is_not_followed_wherever_it_stands(folder, tmp_path):
    (folder / "last").symlink_to(tmp_path / "private" / "key")
    (folder / "middle").symlink_to(tmp_path / "private")
    (tmp_path / "first").symlink_to(tmp_path / "private")
    for root, path in [(folder, "last"), (folder, "middle/key"), (tmp_path / "first", "key")]:
        with pytest.raises(OSError) as caught:
            open_below(str(root), path, os.O_WRONLY | os.O_TRUNC | os.O_CREAT)
        assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)
    with pytest.raises(OSError):
        stat_below(str(folder), "middle/key")
    assert (tmp_path / "private" / "key").read_bytes() == b"secret"


def test_a_fifo_is_refused_and_not_waited_for(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(OSError):
        read_below(str(folder), "pipe", 100)


def test_a_file_beyond_the_bound_is_refused(folder):
    with pytest.raises(OSError) as caught:
        read_below(str(folder), "metrics/m.jsonl", 2)
    assert caught.value.errno == errno.EFBIG


def test_a_path_that_leaves_the_folder_is_refused(folder):
    for path in ("../private/key", "/etc/passwd", "metrics/../../private/key"):
        with pytest.raises(Refused):
            open_below(str(folder), path)


def test_what_is_truncated_and_made_is_written(folder):
    descriptor = open_below(str(folder), "metrics/m.jsonl", os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, b"x")
    os.close(descriptor)
    os.close(open_below(str(folder), "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    assert (folder / "metrics" / "m.jsonl").read_bytes() == b"x"
    assert (folder / "new").stat().st_mode & 0o777 == 0o600


def test_all_below_a_folder_is_found_closed_folders_and_links_among_it(folder, tmp_path):
    (folder / "closed").mkdir()
    (folder / "closed" / "x").write_bytes(b"12")
    (folder / "closed").chmod(0)
    (folder / "out").symlink_to(tmp_path / "private")
    problems: list[OSError] = []

    found = dict(walk_below(str(folder), "", problems.append))

    assert set(found) == {"metrics/m.jsonl", "closed/x", "out"}
    assert (found["closed/x"].st_size, problems) == (2, [])


def test_an_entry_that_cannot_be_looked_at_is_named_and_its_neighbours_are_found(folder, monkeypatch):
    for name in "abc":
        (folder / "metrics" / name).write_bytes(b"")
    real = os.stat

    def stale(path, **options):
        if path == "b":
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(path, **options)

    monkeypatch.setattr(os, "stat", stale)
    problems: list[OSError] = []

    found = {path for path, _ in walk_below(str(folder.parent), "run", problems.append)}

    assert found == {"metrics/a", "metrics/c", "metrics/m.jsonl"}
    assert [(each.errno, each.filename) for each in problems] == [(errno.ESTALE, str(folder / "metrics" / "b"))]


def test_what_is_a_link_or_no_folder_is_not_walked_and_said_so(folder, tmp_path):
    (folder / "out").symlink_to(tmp_path / "private")
    for path in ("out", "metrics/m.jsonl", "absent"):
        problems: list[OSError] = []
        assert list(walk_below(str(folder), path, problems.append)) == []
        assert len(problems) == 1


def test_a_folder_deeper_than_paths_may_be_long_is_left_out_and_removed_all_the_same(folder):
    above = os.open(folder, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("d" * 120, dir_fd=above)
        below = os.open("d" * 120, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    problems: list[OSError] = []

    assert [path for path, _ in walk_below(str(folder), "", problems.append)] == ["metrics/m.jsonl"]
    assert [each.errno for each in problems] == [errno.ENAMETOOLONG]
    parent = os.open(folder.parent, os.O_RDONLY)
    remove_at(parent, "run")
    os.close(parent)
    assert not folder.exists()


def test_what_is_removed_takes_nothing_with_it_that_a_link_leads_to(folder, tmp_path):
    (folder / "metrics" / "out").symlink_to(tmp_path / "private")
    (folder / "metrics").chmod(0)
    parent = os.open(folder.parent, os.O_RDONLY)
    remove_at(parent, "run")
    os.close(parent)
    assert not folder.exists()
    assert (tmp_path / "private" / "key").read_bytes() == b"secret"


def test_a_link_says_where_it_leads_and_only_where_no_other_leads_to_it(folder, tmp_path):
    (tmp_path / "private" / "link").symlink_to("x")
    (folder / "middle").symlink_to(tmp_path / "private")
    assert readlink_below(str(folder), "middle") == str(tmp_path / "private")
    with pytest.raises(OSError):
        readlink_below(str(folder), "middle/link")
    with pytest.raises(OSError):
        readlink_below(str(folder), "metrics/m.jsonl")
