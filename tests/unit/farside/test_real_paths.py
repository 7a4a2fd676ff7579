"""Where a path leads: as Python's own answer, for ways that a program can go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside.system.real_paths import MOST_LINKS, real_path


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/file").write_text("")
    for name, target in {
        "up": "..",
        "a/b/top": "../..",
        "a/b/absolute": str(tmp_path / "a"),
        "a/b/c/back": "../top/a/./b//c",
        "none": "gone/../a/b",
        "hidden": "none/top/a",
        "through-a-file": "a/file/..",
    }.items():
        (tmp_path / name).symlink_to(target)
    monkeypatch.chdir(tmp_path / "a")
    return tmp_path


WAYS = [
    *("", ".", "..", "/", "//", "b/", "b/top", "b/absolute/b/c", "b/c/back/back/..", "../hidden/file", "../up/x/.."),
    *(
        "gone/and/more",
        "gone/../b/top",
        "../through-a-file/b",
        "../../../../../../../../..",
        "file/x",
        "/proc/self",
    ),
]


@pytest.mark.parametrize("way", WAYS)
def test_it_is_pythons_own_answer(tree: Path, way: str) -> None:
    assert real_path(way) == os.path.realpath(way)
    assert real_path(tree / "a" / way) == os.path.realpath(tree / "a" / way)


def test_a_name_that_no_file_can_have_leads_nowhere(tmp_path: Path) -> None:
    assert real_path(tmp_path / "a\0b") == f"{tmp_path}/a\0b"


@pytest.mark.parametrize(("links", "is_gone"), [(MOST_LINKS, True), (MOST_LINKS + 1, False), (5000, False)])
def test_a_way_over_more_links_than_a_program_goes_leads_nowhere(tmp_path: Path, links: int, is_gone: bool) -> None:
    chained(tmp_path, links)
    first = tmp_path / "l0"
    assert real_path(first) == str(tmp_path / "end" if is_gone else first)
    assert first.exists() is is_gone


def test_a_circle_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert real_path(tmp_path / "a") == str(tmp_path / "a")


def chained(folder: Path, links: int) -> None:
    (folder / "end").write_text("end")
    for number in range(links):
        (folder / f"l{number}").symlink_to(f"l{number + 1}" if number + 1 < links else "end")
