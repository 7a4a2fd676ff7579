"""The locks that a project keeps: only locks, and only for what the spec asks."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.environments.environment_plan import is_lock, keep_lock, locks_of, read_lock

SPEC = "5" * 64
HASHED = "six==1.17.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via -r requirements.in\n"
LOCK: dict[str, Any] = {
    "format": 1,
    "spec": SPEC,
    "platform": "linux-x86_64-glibc2.31",
    "python": "3.11.2",
    "requirements": HASHED,
    "conda": [{"url": "https://c.example/x-1.conda", "sha256": "ab"}],
    "backend": "",
}


TELLING = [
    "--index-url https://other.example/simple",
    "-r other.txt",
    "  --extra-index-url https://other.example/simple",
    "# a note \\\n  --index-url https://other.example/simple",
    "six==1.0 \\\n--index-url https://other.example/simple",
]


@pytest.mark.parametrize("more", [{}, {"python": "3.14.0rc2"}, {"conda": []}, {"requirements": ""}, {"later": 7}])
def test_a_lock_is_one(more):
    assert is_lock({**LOCK, **more})


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("format", [2]),
        ("spec", [None]),
        ("python", ["3.11", 3.11, "3.11.2/../x"]),
        ("platform", [["linux"], "../linux"]),
        (
            "requirements",
            [["six"], None, *(f"{HASHED}{line}\n" for line in TELLING), *(f"{line}\n{HASHED}" for line in TELLING)],
        ),
        ("backend", [7]),
        ("conda", [{}, ["x"], [{"url": "https://c.example/x", "sha256": None}], [{"sha256": "ab"}]]),
    ],
)
def test_what_has_other_values_than_a_lock_or_tells_the_installer_what_to_do_is_none(key, values):
    assert [value for value in values if is_lock({**LOCK, key: value})] == []
    assert not is_lock({name: value for name, value in LOCK.items() if name != key})


@pytest.mark.parametrize("more", [{"cuda": {}}, {"cuda": None}, {"build": "x"}])
def test_nor_is_one_whose_further_fields_are_of_another_kind(more):
    assert not is_lock({**LOCK, **more})


def test_only_the_last_ones_of_very_many_are_sent(tmp_path):
    for number in range(40):
        assert keep_lock(tmp_path, {**LOCK, "platform": f"made-up-{number}"}, SPEC, replace=False)
        path = tmp_path / "locks" / SPEC / f"made-up-{number}-3.11.json"
        os.utime(path, (number, number))
    assert [lock["platform"] for lock in locks_of(tmp_path, SPEC)] == [f"made-up-{n}" for n in range(39, 23, -1)]


def test_a_lock_is_kept_for_what_was_asked_and_for_nothing_else(tmp_path):
    assert not keep_lock(tmp_path, LOCK, "6" * 64, replace=True)
    assert not keep_lock(tmp_path, {**LOCK, "spec": "../x"}, "../x", replace=True)
    assert not any(tmp_path.iterdir())
    assert keep_lock(tmp_path, LOCK, SPEC, replace=False)
    assert locks_of(tmp_path, SPEC) == (LOCK,)
    newer = {**LOCK, "requirements": "six==1.18.0\n"}
    assert not keep_lock(tmp_path, newer, SPEC, replace=False)
    assert keep_lock(tmp_path, newer, SPEC, replace=True)
    assert locks_of(tmp_path, SPEC) == (newer,)


def test_processes_that_keep_a_lock_at_once_do_not_write_into_each_others_file(tmp_path):
    folder = tmp_path / "locks" / SPEC
    (folder / ".linux-x86_64-glibc2.31-3.11.json.new").mkdir(parents=True)  # another process is at it
    assert keep_lock(tmp_path, LOCK, SPEC, replace=False)
    assert read_lock(folder / "linux-x86_64-glibc2.31-3.11.json") == LOCK
