"""Which silence means a dead link."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import Unreachable
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Push
from holdfast.workbench.reach.link import PULSE, next_push, wait

NEWS = Push("alive", "r", "", 0, b"")


class Link:
    """Returns these messages in turn, None for nothing in time; the last byte came `seconds` ago."""

    def __init__(self, *said: Any, seconds: float = 0.0) -> None:
        self._said, self._seconds = list(said), seconds
        self.waits: list[float | None] = []
        self.sent: list[Any] = []

    def next_push(self, timeout: float | None) -> Any:
        self.waits.append(timeout)
        return self._said.pop(0)

    def send(self, operation: str, fields: dict[str, Any], body: bytes) -> int:
        self.sent.append((operation, fields))
        return 1

    def has_answer(self, number: int, timeout: float) -> bool:
        self.waits.append(timeout)
        return self._said[0] is not None or self._said.pop(0) is not None

    def answer(self, number: int) -> Any:
        return self._said.pop(0)

    def quiet(self) -> float:
        return self._seconds


def test_a_link_that_says_nothing_for_long_is_dead():
    link: Any = Link(None, None, seconds=46.0)
    with pytest.raises(Unreachable, match=r"Nothing was heard of gpu1 for 45 s\."):
        next_push(link, "gpu1", None, True)
    assert link.waits == [45.0, 1.0]


@pytest.mark.parametrize(
    ("said", "seconds", "heard"),
    [([None, NEWS], 500.0, NEWS), ([None, None], 2.0, None)],
    ids=["what came while this process was stopped is waited for", "a frame that comes slowly is a sign of life"],
)
def test_not_every_silence_is_that_of_a_dead_link(said, seconds, heard):
    link: Any = Link(*said, seconds=seconds)
    assert next_push(link, "gpu1", None, True) is heard


@pytest.mark.parametrize(("wait", "has_pulse"), [(None, False), (100.0, False), (3.0, True), (45.0, True)])
def test_without_a_promise_or_with_a_shorter_wait_it_only_waits(wait, has_pulse):
    link: Any = Link(None, seconds=500.0)
    assert next_push(link, "gpu1", wait, has_pulse) is None
    assert link.waits == [wait]


def test_a_request_asks_for_a_word_now_and_then_and_is_not_answered_by_a_dead_link():
    link: Any = Link(None, None, seconds=46.0)
    with pytest.raises(Unreachable, match="gpu1"):
        wait(Client(link).stream({}, [], PULSE), link, "gpu1")
    assert link.sent == [("stream", {"files": [], "alive": PULSE})]


def test_a_request_waits_for_its_answer_as_long_as_something_is_heard():
    link: Any = Link(None, None, None, None, {"files": 0, "alive": 10}, seconds=2.0)
    assert wait(Client(link).stream({}, [], PULSE), link, "gpu1").alive == 10
