"""What a host reports about its environments."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.farside.operations import environment_list
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused


def make(home: Home, name: str, used: float, complete: bool = True) -> Path:
    folder = Path(home.environment(name))
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to("/usr/bin/env")
    if complete:
        mark = {"packages": ["numpy==1", "six==2"], "python": "3.11.2", "built": 5.0, "seconds": 2.5}
        (folder / ".complete").write_text(json.dumps({**mark, "summary": "numpy"}))
    lock = Path(home.environment(name) + ".lock")
    lock.touch()
    os.utime(lock, (used, used))
    return folder


def test_the_one_that_was_used_last_comes_first(home):
    assert environment_list.listed(home, {}) == []
    make(home, "older", 10)
    make(home, "newer", 20)

    rows = environment_list.listed(home, {})

    assert [row["id"] for row in rows] == ["newer", "older"]
    assert (rows[0]["packages"], rows[0]["python"], rows[0]["state"]) == (2, "3.11.2", "ready")


def test_files_that_the_cache_has_too_free_nothing(home, tmp_path):
    folder = make(home, "one", 10)
    before = environment_list.listed(home, {})[0]
    (tmp_path / "cached").write_bytes(b"x" * 1000)
    os.link(tmp_path / "cached", folder / "linked")

    row = environment_list.listed(home, {})[0]

    assert row["size"] - before["size"] == 1000
    assert row["own"] == before["own"]


def test_one_that_was_not_finished_or_has_lost_its_python_is_told_apart(home):
    make(home, "half", 10, complete=False)
    folder = make(home, "lost", 20)
    (folder / "bin" / "python").unlink()

    assert {row["id"]: row["state"] for row in environment_list.listed(home, {})} == {
        "half": "unfinished",
        "lost": "broken",
    }


def test_one_is_found_by_the_beginning_of_its_name_and_no_name_leads_out_of_the_folder(home):
    make(home, "abc1", 10)
    make(home, "abd2", 10)

    assert environment_list.shown(home, {"environment": "abc"})["packages"] == ["numpy==1", "six==2"]
    for name, words in (("ab", "several"), ("x", "abc1, abd2"), ("../runs", ""), ("", ""), ("/etc", "")):
        with pytest.raises(Refused) as refused:
            environment_list.shown(home, {"environment": name})
        assert words in f"{refused.value.message} {refused.value.hint}"
