"""Answers become values; a malformed answer is the same error for every operation."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from holdfast.errors import HostError
from holdfast.farside.agent import Agent
from holdfast.farside.operations.table import AGENT, OPERATIONS
from holdfast.hosts.client import Client, Reply
from holdfast.hosts.replies import Inventory, ProjectRuns, Stored
from holdfast.model import Place

NOTHING: list[Any] = [None, True, 7, "text", [None], [[]], {"missing": 1}, {"runs": [["a"]], "more": 1}]
ANSWERED_BY_ANYTHING = {"pack", "put", "tool", "link", "leave", "deauthorize", "start_by", "prove_begin"}
"""Their answer only says that it is done."""
GIVEN = {"Sequence": (), "Mapping": {}, "str": "", "bytes": b"", "int": 0, "float": 0.0, "bool": False, "Place": None}


class Answering:
    """A connection that gives the same answer to everything."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[str] = []

    def request(self, operation: str, fields: Any = None) -> Any:
        self._note(operation, fields)
        return self._answer

    def send(self, operation: str, fields: Any = None, body: bytes = b"") -> int:
        self._note(operation, fields)
        return 0

    def _note(self, operation: str, fields: Any) -> None:
        self.asked.append(operation)
        known = {each.rstrip("?") for each in OPERATIONS[operation].takes}
        assert set(fields or {}) <= known, "the far side's table says what it takes"

    def answer(self, number: int) -> Any:
        return self._answer


def called(name: str, answer: Any, *given: Any) -> Any:
    """What the client's method returns for an answer; missing arguments are filled in by kind."""
    connection: Any = Answering(answer)
    method = getattr(Client(connection), name)
    if not given:
        kinds = [each.annotation for each in inspect.signature(method).parameters.values()]
        given = tuple(GIVEN.get(kind.split("[")[0].split(" ")[0], {}) for kind in kinds)
    found = method(*given)
    assert connection.asked == [name.replace("_", "-")]
    return found.wait() if isinstance(found, Reply) else found


def test_the_client_has_a_method_for_each_operation_and_no_other():
    assert [name.replace("_", "-") for name in METHODS] == sorted(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_of_the_table_is_done_somewhere(name):
    operation = OPERATIONS[name]
    if operation.module == AGENT:
        assert callable(getattr(Agent, f"_{operation.function}"))
    else:
        assert callable(getattr(importlib.import_module(f"holdfast.farside.{operation.module}"), operation.function))


METHODS = sorted(name for name in vars(Client) if not name.startswith("_"))


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ANSWERED_BY_ANYTHING])
def test_an_answer_of_another_shape_is_an_error_of_the_host(name):
    for answer in NOTHING if name != "records" else NOTHING[:-4]:  # a run that is gone is null there
        with pytest.raises(HostError, match="in a way that is not understood"):
            called(name, answer)


@pytest.mark.parametrize("name", sorted(ANSWERED_BY_ANYTHING))
def test_an_answer_that_says_only_that_it_is_done_may_be_anything(name):
    called(name, {"stored": True})


LOGOUT = {"user": "me", "ends": False, "lingers": None, "unit": False, "said": "", "start": ""}
LISTED = {"id": "abc1", "state": "ready", "summary": "six", "python": "3.11.2", "packages": 1, "size": 10, "own": 3}
LISTED |= {"used": 7, "built": 5.0, "seconds": 2.5}


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("sizes", {"home": "/h", "stored": [["runs", 7]], "runs": []}, {"stored": [["runs", "7"]]}),
        ("sizes", {"home": "/h", "stored": [], "runs": []}, {"stored": [["runs", 7, 8]]}),
        ("purge", {"removed": 7, "kept": ["notes.txt"]}, {"removed": True}),
        ("purge", {"removed": 7, "kept": []}, {"kept": "notes.txt"}),
        ("authorize", {"file": "/k", "added": True, "made": 0, "open_to_others": []}, {"added": 1}),
        ("places", {"network": "nfs4", "local": None}, {"local": 7}),
        ("after_logout", LOGOUT, {"lingers": "yes"}),
        ("prove_look", {"alive": True}, {"alive": "yes"}),
        *(("environment_list", [LISTED], {"size": wrong}) for wrong in ("x", 10**400, True, None)),
        *(("environment_list", [LISTED], {"used": wrong}) for wrong in (float("nan"), float("inf"), 1e300, "2.5")),
    ],
)
def test_a_value_of_another_kind_is_an_error_of_the_host(name, right, wrong):
    called(name, right)
    with pytest.raises(HostError):
        called(name, [{**right[0], **wrong}] if isinstance(right, list) else {**right, **wrong})


@pytest.mark.parametrize("missing", LOGOUT)
def test_nothing_may_be_missing(missing):
    with pytest.raises(HostError):
        called("after_logout", {name: value for name, value in LOGOUT.items() if name != missing})


def test_what_is_understood_is_a_value():
    answer = {"home": "/h", "stored": [["runs", 7]], "runs": [["p", 2, 1]], "more": "is passed over"}
    assert called("sizes", answer) == Inventory("/h", (Stored("runs", 7),), (ProjectRuns("p", 2, 1),))


@pytest.mark.parametrize(("machine", "place"), [("ab", Place("ab", "/h", "node1")), ("", None)])
def test_a_machine_says_who_it_is_or_cannot_tell(machine, place):
    said = {"machine": machine, "folder": "/h", "host": "node1", "home": "/h", "boot": "b", "time": 5}
    hello = called("hello", {**said, "executable": "/usr/bin/python3", "entry": "main.py"})
    assert (hello.place, hello.time) == (place, 5.0)
