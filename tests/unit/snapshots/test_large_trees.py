from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.presenting.event_lines import lines
from holdfast.snapshots import cache, large_trees
from holdfast.snapshots.large_trees import LargeFolder, LargeTree, large_tree
from holdfast.snapshots.take import Progress, SnapshotListener, take_snapshot
from holdfast.workbench.reach import events


def sparse(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, size)


def test_large_files_are_found_by_folder_without_being_opened(tmp_path):
    for path, size in {"data/a": 150, "data/deep/b": 100, "top": 120, "src/x": 1, "logs/y": 2}.items():
        sparse(tmp_path / path, size * 1_000_000)
    (tmp_path / "data" / "a").chmod(0)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("data/a")
    paths = ["data/a", "data/deep/b", "top", "src/x", "logs/y", "pipe", "link", "gone", "a\0b"]
    found = large_tree(str(tmp_path), paths)
    assert found == LargeTree(
        5,
        373_000_000,
        (LargeFolder("data/", 2, 250_000_000), LargeFolder("top", 1, 120_000_000)),
    )
    assert found.line == "/data/"
    assert large_tree(str(tmp_path), ["data/a", "src/x"]) is None


def test_many_files_are_ordered_by_their_number(tmp_path, monkeypatch):
    monkeypatch.setattr(large_trees, "MANY_FILES", 3)
    for path, size in {"many/a": 1, "many/b": 1, "many/c": 1, "few/d": 1000}.items():
        sparse(tmp_path / path, size)
    found = large_tree(str(tmp_path), ["many/a", "many/b", "many/c", "few/d"])
    assert found is not None and [each.path for each in found.largest] == ["many/", "few/"]
    assert large_tree(str(tmp_path), ["many/a", "many/b", "many/c"]) is None


def test_much_is_announced_before_any_of_it_is_read_and_once(tmp_path, monkeypatch):
    monkeypatch.setattr(large_trees, "MUCH", 10)
    project, state, heard = tmp_path / "project", tmp_path / "state", list[str]()
    sparse(project / "data" / "a", 8)
    sparse(project / "b", 8)

    def opened(path: str):
        heard.append("read")
        return open(path, "rb", buffering=0)

    progress: Progress = lambda _files, _bytes: None  # noqa: E731
    listener = SnapshotListener(progress, lambda tree: heard.append(f"{tree.bytes} bytes"))
    monkeypatch.setattr(cache.CacheWriter, "may_enter", lambda _self, _stat: True)  # however new the files are
    take_snapshot(project, state, listener, opener=opened)
    assert heard == ["16 bytes", "read", "read"]
    sparse(project / "c", 8)
    take_snapshot(project, state, listener, opener=opened)
    assert heard == ["16 bytes", "read", "read", "read"], "what is stored is not counted again"


@pytest.mark.parametrize("name", ["data\x1b[2J", "a b", "line\nbreak"])
def test_the_line_names_the_folder_that_can_be_left_out(name):
    tree = LargeTree(48_210, 3_100_000_000, (LargeFolder(f"{name}/", 40_000, 2_900_000_000),))
    (line,) = lines(events.ReadingMuch("/home/me/repo", tree), 0)
    assert line.text.startswith("Reading 48,210 files, 3.1 GB, of /home/me/repo;")
    assert "(2.9 GB)" in line.text
    assert "--project DIR" in line.remedy and line.remedy.endswith(tree.line)
