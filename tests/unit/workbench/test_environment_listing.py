"""What a host says about its environments, as values."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import FarSideError, UnknownName, UsageError
from holdfast.presenting.lines import short_id
from holdfast.workbench.environments.inventory import (
    find_environments,
    remove_environments,
    show_environment,
)
from holdfast.workbench.reach import events

ROW = {
    "id": "abc1",
    "state": "ready",
    "summary": "Python 3.11: six",
    "python": "3.11.2",
    "packages": 1,
    "built": 5.0,
    "seconds": 2.5,
    "used": 7,
    "size": 10,
    "own": 3,
}
MORE = {"listed": ROW, "path": "/e/abc1", "packages": ["six==1"], "lock": None, "users": [["p", "p_1", True]]}
LOCK = {
    "format": 1,
    "spec": "5" * 64,
    "platform": "linux-x86_64-glibc2.31",
    "python": "3.11.2",
    "requirements": "six==1\n",
    "conda": [],
    "backend": "",
}


class FakeHost:
    """Answers each operation with its prepared answer; an exception is raised."""

    name, is_here = "box", True

    def __init__(self, **answers: Any) -> None:
        self._answers = {name.replace("_", "-"): answer for name, answer in answers.items()}
        self.asked: list[tuple[str, Any]] = []

    def connect(self, may_ask: bool = True) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def request(self, operation: str, fields: Any = None) -> Any:
        self.asked.append((operation, fields))
        answer = self._answers[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def send(self, operation: str, fields: Any = None, body: bytes = b"") -> int:
        self.asked.append((operation, fields))
        return len(self.asked) - 1

    def answer(self, number: int) -> Any:
        return self.request(*self.asked.pop(number))


host: Any = FakeHost


def test_one_is_found_by_the_beginning_of_its_id_or_not_at_all():
    there = host(environment_list=[{**ROW, "id": "abc1"}, {**ROW, "id": "abd2"}])
    assert [each.id for each in find_environments(there, ["abd", "abc1", "abd2"])] == ["abd2", "abc1"]
    assert [each.id for each in find_environments(there, [])] == ["abc1", "abd2"]
    with pytest.raises(UsageError, match="any of 2 environments"):
        find_environments(there, ["ab"])
    with pytest.raises(UnknownName, match="no environment `x`"):
        find_environments(there, ["x"])


def test_all_about_one_is_asked_by_its_whole_id():
    there = host(environment_list=[ROW], environment_show={**MORE, "lock": LOCK})
    shown = show_environment(there, "ab")
    assert there.asked[-1] == ("environment-show", {"environment": "abc1"})
    assert (shown.path, shown.packages, shown.users[0].run_id) == ("/e/abc1", ("six==1",), "p_1")
    assert shown.lock == LOCK


def test_one_that_is_held_is_kept_and_that_is_said():
    there = host(remove=FarSideError("living", "It is in use."))
    assert list(remove_environments(there, ["abc1"])) == [events.Removed("environment abc1", 0, "It is in use.")]
    with pytest.raises(FarSideError):
        list(remove_environments(host(remove=FarSideError("storage", "No.")), ["abc1"]))


def test_an_id_is_shown_by_its_beginning_and_a_name_as_it_is():
    assert short_id("0123456789abcdef") == "01234567"
    assert short_id("py-rattler-0.28.0") == "py-rattler-0.28.0"
