"""Files that somebody else may have made."""

import errno
import os

import pytest

from holdfast.regular_files import NotJson, open_regular, read_json, read_regular, what_is_odd


def test_a_file_and_a_link_to_one_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "file", 4) == read_regular(tmp_path / "link", 4) == b"text"


def test_a_link_may_be_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError) as caught:
        open_regular(tmp_path / "link", os.O_WRONLY | os.O_TRUNC, follows_link=False)
    assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "file").read_bytes() == b"text"


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_bytes(b"text")
    for path, most in [(tmp_path / "fifo", 9), (tmp_path, 9), ("/dev/zero", 9), (tmp_path / "file", 3)]:
        with pytest.raises(OSError):
            read_regular(path, most)


def test_json_is_read_or_told_apart_from_a_disk_s_errors(tmp_path):
    (tmp_path / "file").write_text('{"a": 1}')
    (tmp_path / "link").symlink_to("file")
    assert read_json(tmp_path / "link", 8) == {"a": 1}
    for path, most, follows_link in [("link", 8, False), ("file", 7, True), ("none", 8, True)]:
        with pytest.raises(OSError):
            read_json(tmp_path / path, most, follows_link)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000], ids=len)
def test_what_is_no_json_is_one_error(data, tmp_path):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(NotJson):
        read_json(tmp_path / "file", 1 << 20)


def test_a_link_among_holdfast_s_own_files_is_named_with_what_removes_it(tmp_path):
    link, pipe = str(tmp_path / "a link"), str(tmp_path / "pipe")
    os.symlink("elsewhere", link)
    os.mkfifo(pipe)
    assert what_is_odd(link) == (
        f"`{link}` is a link, and Holdfast follows none here.",
        f"Remove it: rm '{link}'\nThen check what created it.",
    )
    message, remedy = what_is_odd(pipe, "git rm x && ")
    assert "neither a file" in message and remedy.startswith(f"Remove it: git rm x && rm {pipe}\n")
