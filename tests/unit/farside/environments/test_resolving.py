"""One spec is resolved once for all runs that want it at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments.locks import Lock, make_lock
from holdfast.farside.environments.resolving import Resolver
from holdfast.farside.layout import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(str(tmp_path))
    Path(found.locks()).mkdir()
    return found


def resolver(home: Home, **wishes: Any) -> Resolver:
    plan = {"spec": "abc", "upgrade": False, **wishes}
    return Resolver(home, plan, None, {}, None)  # type: ignore[arg-type] # nothing is run


def made(requirements: str) -> Lock:
    return make_lock("abc", "linux-x86_64-glibc2.36", "3.11.2", requirements)


def never() -> Lock:
    raise AssertionError("it was resolved a second time")


def test_a_lock_that_another_run_made_since_the_first_look_is_taken(home: Home) -> None:
    first = resolver(home).lock("3.11", [], lambda lock: True, lambda: made("six==1.16.0"))

    assert resolver(home).lock("3.11", [], lambda lock: True, never) == first


def test_one_that_does_not_fit_is_not(home: Home) -> None:
    resolver(home).lock("3.11", [], lambda lock: True, lambda: made("six==1.16.0"))

    found = resolver(home).lock("3.12", [], lambda lock: lock["python"] == "3.12.1", lambda: made("six==1.17.0"))

    assert found["requirements"] == "six==1.17.0"


def test_an_upgrade_resolves_anew_whatever_is_there(home: Home) -> None:
    resolver(home).lock("3.11", [], lambda lock: True, lambda: made("six==1.16.0"))

    found = resolver(home, upgrade=True).lock("3.11", [], lambda lock: True, lambda: made("six==1.17.0"))

    assert found["requirements"] == "six==1.17.0"
