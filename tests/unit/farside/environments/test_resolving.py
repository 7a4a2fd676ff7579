"""A spec is resolved once for all runs that need it at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.farside.environments.locks import Lock, make_lock
from holdfast.farside.environments.resolve import Resolver
from holdfast.farside.system.layout import Home


def resolver(home: Home, **wishes: Any) -> Resolver:
    plan = {"spec": "abc", "upgrade": False, **wishes}
    return Resolver(home, plan, None, {}, None)  # type: ignore[arg-type] # nothing is run


def made(requirements: str) -> Lock:
    return make_lock("abc", "linux-x86_64-glibc2.36", "3.11.2", requirements)


def never() -> Lock:
    raise AssertionError("it was resolved a second time")


def test_a_lock_that_another_run_made_since_the_first_look_is_taken(home):
    first = resolver(home).lock("3.11", [], lambda lock: True, lambda: made("six==1.16.0"))
    assert resolver(home).lock("3.11", [], lambda lock: True, never) == first


@pytest.mark.parametrize(("pin", "fits", "upgrade"), [("3.12", False, False), ("3.11", True, True)])
def test_one_that_does_not_fit_is_not_and_none_where_an_upgrade_is_wanted(home, pin, fits, upgrade):
    resolver(home).lock("3.11", [], lambda lock: True, lambda: made("six==1.16.0"))
    found = resolver(home, upgrade=upgrade).lock(pin, [], lambda lock: fits, lambda: made("six==1.17.0"))
    assert found["requirements"] == "six==1.17.0"
