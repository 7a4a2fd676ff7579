"""What a host says about its environments, as values."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import FarSideError, HostError, UnknownName, UsageError
from holdfast.workbench import events
from holdfast.workbench.environments.listing import (
    find_environments,
    list_environments,
    remove_environments,
    short,
    show_environment,
)

ROW = {
    "id": "abc1",
    "complete": True,
    "works": True,
    "summary": "Python 3.11: six",
    "python": "3.11.2",
    "count": 1,
    "built": 5.0,
    "seconds": 2.5,
    "used": 7,
    "in_use": False,
    "in_build": False,
    "size": 10,
    "own": 3,
}
MORE = {**ROW, "path": "/e/abc1", "packages": ["six==1"], "lock": None, "users": [["p", "p_1", True]]}
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
    """Answers each operation with what it was given; an exception is raised."""

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


host: Any = FakeHost


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({}, "ready"),
        ({"in_use": True}, "in use"),
        ({"in_build": True, "complete": False, "works": False}, "being built"),
        ({"complete": False, "works": False}, "unfinished"),
        ({"works": False}, "broken"),
    ],
)
def test_the_state_is_one_word_for_people(said, state):
    (listed,) = list_environments(host(environment_list=[{**ROW, **said}]))
    assert listed.state == state


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


WRONG: list[dict[str, Any]] = [
    *({"size": "x"}, {"size": 10**400}, {"in_use": 1}, {"used": float("nan")}, {"used": float("inf")}),
    *({"built": 1e300}, {"seconds": "2.5"}, {"seconds": True}),
]


@pytest.mark.parametrize("answer", [None, [{}], [7], {"a": 1}, *([{**ROW, **wrong}] for wrong in WRONG)])
def test_what_no_far_side_says_is_an_error(answer):
    with pytest.raises(HostError):
        list_environments(host(environment_list=answer))


def test_an_id_is_shown_by_its_beginning_and_a_name_as_it_is():
    assert short("0123456789abcdef") == "01234567"
    assert short("py-rattler-0.28.0") == "py-rattler-0.28.0"


@pytest.mark.parametrize(
    "wrong",
    [
        *({"lock": lock} for lock in ("text", {}, {**LOCK, "platform": 7}, [LOCK])),
        *({"users": [["p", "p_1"]]}, {"users": [7]}, {"packages": "six"}, {"path": None}, {"used": float("nan")}),
    ],
)
def test_what_no_far_side_says_about_one_is_an_error(wrong):
    with pytest.raises(HostError):
        show_environment(host(environment_list=[ROW], environment_show={**MORE, **wrong}), "abc1")
