"""Files that somebody else may have made."""

import errno
import os

import pytest

from holdfast.regular_files import open_regular, read_regular


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
