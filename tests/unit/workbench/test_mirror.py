"""The near copies of a run's files: continued where they end, never spliced, never thrown away."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import HostError
from holdfast.hosts.connection import Push
from holdfast.workbench.following.mirror import Mirror


def data(offset: int, content: bytes, file: str = "driver_log") -> Push:
    return Push("data", "r_1", file, offset, content)


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path)
    mirror.apply(data(0, b"one\n"))
    return mirror


@pytest.mark.parametrize("offset", [0, 3, 5])
def test_bytes_that_do_not_continue_the_copy_are_refused(tmp_path: Path, mirror: Mirror, offset: int) -> None:
    with pytest.raises(HostError, match=f"from byte {offset}, not 4"):
        mirror.apply(data(offset, b"two\n"))
    assert (tmp_path / "driver_log").read_bytes() == b"one\n"


def test_a_copy_that_is_begun_again_is_kept_beside_the_new_one(tmp_path: Path, mirror: Mirror) -> None:
    for content in (b"two\n", b"three\n"):
        mirror.apply(Push("restart", "r_1", "driver_log", 0, b""))
        mirror.apply(data(0, content))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "driver_log": b"three\n",
        "driver_log.diverged-1": b"one\n",
        "driver_log.diverged-2": b"two\n",
    }


@pytest.mark.parametrize("file", ["../driver_log", "submission.json", "metrics/../x.jsonl", "metrics/1-a/b.jsonl"])
def test_a_file_that_no_run_has_is_refused(tmp_path: Path, mirror: Mirror, file: str) -> None:
    with pytest.raises(HostError, match="that no run has"):
        mirror.apply(data(0, b"x", file))
    assert [path.name for path in tmp_path.iterdir()] == ["driver_log"]
