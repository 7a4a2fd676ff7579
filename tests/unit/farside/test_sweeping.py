"""What a sweep removes, and what is needed meanwhile."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.operations import home_lock, sweep
from holdfast.farside.operations.objects import Arrivals
from holdfast.farside.system.layout import Home

OLD = time.time() - 4000


def store(home: Home, content: bytes) -> str:
    """An object that was not needed for an hour."""
    digest = hashlib.sha256(content).hexdigest()
    path = Path(home.objects(), digest[:2], digest[2:])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (OLD, OLD))
    return digest


def manifest(home: Home, name: str, content: str, size: int) -> str:
    rows = [[name, "f", content, size]]
    return store(home, json.dumps({"format": 1, "files": rows}, separators=(",", ":")).encode())


def stored(home: Home) -> set[str]:
    return {each.parent.name + each.name for each in Path(home.objects()).glob("??/*")}


def test_contents_that_were_announced_meanwhile_stay(home, monkeypatch):
    """Between the check of what runs need and the removal, a client sends a snapshot and is told that everything is
    here."""
    content, other = store(home, b"import torch\n"), store(home, b"unused")
    snapshot = manifest(home, "train.py", content, 13)
    looked = sweep._needed
    answers: list[Any] = []

    def looking(*given: Any) -> set[str]:
        found = looked(*given)
        if not answers:
            answers.append(Arrivals(home).prepare({"snapshot": snapshot}, b""))
        return found

    monkeypatch.setattr(sweep, "_needed", looking)
    answer = sweep.sweep(home, {})
    assert answers == [{"lacks": [], "parts": {}, "needs": ""}]
    assert stored(home) == {content, snapshot}
    assert other not in stored(home)
    assert [row[:2] for row in answer["removed"]] == [["objects", 1]]


def test_what_a_tool_still_is_frees_no_room(home):
    store(home, b"12345")
    program = store(home, b"a program")
    os.link(Path(home.objects(), program[:2], program[2:]), Path(home.path, "uv"))
    assert sweep.sweep(home, {})["removed"] == [["objects", 2, 5]]


def test_a_sweep_waits_for_a_client_that_announces_a_snapshot(home, monkeypatch):
    content = store(home, b"x")
    monkeypatch.setattr(home_lock, "PATIENCE", 0.05)
    with home_lock.Adding(home):
        answer = sweep.sweep(home, {})
    assert stored(home) == {content}
    assert [row[0] for row in answer["kept"]] == ["files that no run needs"]


LEFT = [
    "shells/0a1b2c",
    "proofs/0a1b2c",
    "objects/.incoming/" + "ab" * 32,
    "objects/.incoming/new-77",
    "farside/.new-0123456789abcdef-77/holdfast/main.py",
    "runs/p1/.new-g1-77/plan.json",
    "runs/p1/.removing-r1-1700000000000/plan.json",
    ".removing-cache-1700000000000/wheel",
    ".purging-1700000000000/p1/plan.json",
]


@pytest.mark.parametrize("name", LEFT)
def test_what_was_left_half_done_goes_after_an_hour(home, name):
    path = Path(home.path, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345")
    assert sweep.sweep(home, {}) == {"removed": [], "kept": []}
    assert path.exists()
    for each in (path, *path.parents):
        if each == Path(home.path):
            break
        os.utime(each, (OLD, OLD))
    assert sweep.sweep(home, {}) == {"removed": [["leftovers", 1, 5]], "kept": []}
    assert not path.exists()


def test_a_folder_that_is_not_ours_is_not_swept(tmp_path):
    for name in ("cache", "thesis"):
        (tmp_path / "scratch" / name).mkdir(parents=True)
    answer = sweep.sweep(Home(str(tmp_path / "scratch")), {"cache": True})
    assert answer["removed"] == []
    assert (tmp_path / "scratch" / "cache").is_dir()


def test_packages_stay_as_long_as_a_run_may_build_its_environment_from_them(home):
    wheel = store(home, b"a wheel")
    packages = manifest(home, "six-1-py3-none-any.whl", wheel, 7)
    run = Path(home.runs(), "p1", "r1")
    run.mkdir(parents=True)
    (run / "plan.json").write_text(json.dumps({"snapshot": "0" * 64, "environment": {"packages": packages}}))
    (run / "journal.jsonl").write_text('{"t": 1, "e": "created", "run": "r1"}\n')

    sweep.sweep(home, {})
    assert stored(home) == {wheel, packages}

    with (run / "journal.jsonl").open("a") as journal:
        journal.write('{"t": 2, "e": "ended", "reason": "completed"}\n')
    sweep.sweep(home, {})
    assert stored(home) == set()


def test_containers_of_runs_that_are_over_go_where_any_run_had_one(home, monkeypatch):
    monkeypatch.setattr("holdfast.farside.operations.leftover_containers.remove", lambda _: ["holdfast-iris_1"])
    assert sweep.sweep(home, {})["removed"] == [], "no question if none was ever made"
    Path(home.docker()).write_text("{}")
    assert sweep.sweep(home, {})["removed"] == [["container holdfast-iris_1", 1, 0]]
