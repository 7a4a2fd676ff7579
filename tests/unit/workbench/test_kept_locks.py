"""A run's lock is kept for the next run, if it is what the run asked for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.environments.environment_plan import locks_of
from holdfast.workbench.following.outputs import _keep_lock
from holdfast.workbench.submitting.environment_choice import _pairs, _secrets_of_plan

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


def keep(folder: Path, lock: Any, imported: bool = False, **plan: Any) -> None:
    (folder / "environment.json").write_text(json.dumps(lock))
    plans = SimpleNamespace(plan=lambda _: {"environment": {"spec": SPEC, "exact": False, "upgrade": False, **plan}})
    project = SimpleNamespace(state_directory=folder)
    submission = SimpleNamespace(properties={"imported": "from gpu1"} if imported else {})
    session: Any = SimpleNamespace(folder=folder, folders=plans, run_id="p_1", project=project, submission=submission)
    _keep_lock(session)


def test_the_lock_of_what_was_asked_for_is_kept(tmp_path):
    keep(tmp_path, LOCK)
    assert locks_of(tmp_path, SPEC) == (LOCK,)


def test_one_that_was_asked_for_anew_replaces_the_other_unless_only_a_host_says_that_it_was(tmp_path):
    newer, newest = ({**LOCK, "requirements": f"six=={version}\n"} for version in (2, 3))
    keep(tmp_path, LOCK)
    keep(tmp_path, newer, upgrade=True)
    assert locks_of(tmp_path, SPEC) == (newer,)
    keep(tmp_path, newest, imported=True, upgrade=True)
    assert locks_of(tmp_path, SPEC) == (newer,)


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


@pytest.mark.parametrize("odd", [None, 7, 2.5, True, "text", {"a": 1}])
def test_what_a_plan_says_in_another_type_counts_as_nothing(odd):
    context: Any = SimpleNamespace(environment={"t": "value", "a": "value"})
    configuration: Any = SimpleNamespace(environment=None)
    assert _pairs(odd) == ()
    assert _secrets_of_plan({"secrets": odd}, configuration, context) == {}
