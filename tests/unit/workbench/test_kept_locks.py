"""A run's lock is kept for the next run, if it is what the run asked for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.environments.environment_plan import locks_of
from holdfast.workbench.following.outputs import _keep_lock

SPEC, OTHER = "5" * 64, "6" * 64
LOCK: dict[str, Any] = {
    "format": 1,
    "spec": SPEC,
    "platform": "linux-x86_64-glibc2.31",
    "python": "3.11.2",
    "requirements": "six==1\n",
    "conda": [],
    "backend": "",
}


def keep(folder: Path, lock: Any, **plan: Any) -> None:
    (folder / "environment.json").write_text(json.dumps(lock))
    plans = SimpleNamespace(plan=lambda _: {"environment": {"spec": SPEC, "exact": False, "upgrade": False, **plan}})
    project = SimpleNamespace(state_directory=folder)
    session: Any = SimpleNamespace(folder=folder, folders=plans, run_id="p_1", project=project)
    _keep_lock(session)


def test_the_lock_of_what_was_asked_for_is_kept(tmp_path):
    keep(tmp_path, LOCK)
    assert locks_of(tmp_path, SPEC) == (LOCK,)


@pytest.mark.parametrize(
    ("lock", "plan"),
    [
        ({**LOCK, "spec": OTHER}, {}),
        (LOCK, {"spec": OTHER}),
        (LOCK, {"exact": True}),
        ({**LOCK, "requirements": "--index-url https://other.example/simple\nsix==1\n"}, {}),
        ({**LOCK, "python": 3}, {}),
        (7, {}),
    ],
)
def test_any_other_is_not(tmp_path, lock, plan):
    keep(tmp_path, lock, **plan)
    assert not (tmp_path / "locks").exists()
