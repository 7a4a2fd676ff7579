"""Links and far sides that are neither healthy nor gone: one that falls silent, one that sends nonsense."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.errors import HostError
from holdfast.hosts.connection import Connection, Push
from holdfast.model import Status
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.session import session_of
from holdfast.workbench.reach import events, link
from kit.laptops import SCRIPT, Box, ended
from kit.waiting import wait_for

SILENCE = 3.0
"""Seconds. Longer than a busy machine delays a process that speaks every tenth of a second."""
NOTICED = ["Nothing was heard of gpu1 for 3 s."]


class Stoppable(Box):
    """A box whose far sides can be stopped: they neither answer nor end, as behind a dead link."""

    @classmethod
    def like(cls, box: Box) -> Stoppable:
        made = cls(box.name, box.folder)
        made.pids = []
        return made

    pids: list[int]

    def connect(self, may_ask: bool = True) -> Connection:
        connection = super().connect(may_ask)
        self.pids.append(connection._end._process.pid)
        return connection

    def stop(self) -> None:
        os.kill(self.pids[-1], signal.SIGSTOP)

    def let_go(self) -> None:
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.fixture
def box(boxes: dict[str, Any]) -> Iterator[Stoppable]:
    boxes["gpu1"] = Stoppable.like(boxes["gpu1"])
    yield boxes["gpu1"]
    boxes["gpu1"].let_go()


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "TRIES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(link, "PULSE", 0.1)
    monkeypatch.setattr(link, "SILENCE", SILENCE)


def test_a_link_that_died_without_a_word_is_noticed_and_taken_up_again(laptop, box):
    run = laptop.start("gpu1")
    happened: list[events.Event] = []
    for event in Follower(session_of(laptop.project, run, laptop.context)).follow():
        # Only once: the rest of the line may come over the next connection.
        if isinstance(event, events.OutputArrived) and not any(isinstance(each, type(event)) for each in happened):
            box.stop()
        happened.append(event)
        if isinstance(event, events.ConnectionLost):
            box.open_gate()
    assert [each.reason for each in happened if isinstance(each, events.ConnectionLost)] == NOTICED
    said = [type(each) for each in happened if isinstance(each, events.ConnectionLost | events.Reconnected)]
    assert said == [events.ConnectionLost, events.Reconnected]
    assert ended(happened).status is Status.COMPLETED


def test_that_a_link_is_back_is_said_before_what_comes_over_it(laptop, box):
    (laptop.root / "train.py").write_text(SCRIPT + "print('second line', flush=True)\n")
    run = laptop.start("gpu1")
    copy = laptop.folders.path(run) / "driver_log"
    happened: list[events.Event] = []
    shown = b""
    for event in Follower(session_of(laptop.project, run, laptop.context)).follow():
        if isinstance(event, events.OutputArrived):
            shown += event.data  # a line and its end may come one after the other
            if shown == b"first line\n":
                box.stop()
        elif isinstance(event, events.ConnectionLost):
            box.open_gate()
            wait_for(lambda: b"second line\n" in copy.read_bytes(), what="the backlog is here before it is shown")
        happened.append(event)
    at = next(i for i, each in enumerate(happened) if isinstance(each, events.Reconnected))
    assert b"".join(each.data for each in happened[at:] if isinstance(each, events.OutputArrived)) == b"second line\n"
    assert shown == b"first line\nsecond line\n"


def test_outputs_on_their_way_home_notice_a_link_that_died(laptop, box):
    (laptop.root / "train.py").write_text("import os\nopen('outputs/big', 'wb').write(os.urandom(40 << 20))\n")
    box.open_gate()
    run = laptop.start("gpu1")
    happened: list[events.Event] = []
    for event in Follower(session_of(laptop.project, run, laptop.context)).follow():
        if isinstance(event, events.Fetched) and not any(isinstance(each, events.Fetched) for each in happened):
            box.stop()
        happened.append(event)
    lost = [each.reason for each in happened if isinstance(each, events.ConnectionLost)]
    assert lost == NOTICED
    assert ended(happened).status is Status.COMPLETED
    assert (laptop.folders.path(run) / "outputs" / "big").stat().st_size == 40 << 20


def test_a_host_that_dies_when_it_is_asked_for_the_outputs_is_noticed(laptop, box, monkeypatch):
    box.open_gate()
    run = laptop.start("gpu1")
    send = Connection.send
    stopped: list[str] = []

    def stopping(self: Connection, operation: str, fields: Any = None, body: bytes = b"") -> int:
        if operation == "list" and not stopped:
            stopped.append(operation)
            box.stop()
        return send(self, operation, fields, body)

    monkeypatch.setattr(Connection, "send", stopping)
    happened = list(Follower(session_of(laptop.project, run, laptop.context)).follow())
    lost = [each.reason for each in happened if isinstance(each, events.ConnectionLost)]
    assert lost == NOTICED
    assert (laptop.folders.path(run) / "outputs" / "result").read_text() == "made on gpu1"


def test_a_run_that_says_nothing_for_long_is_not_taken_for_a_dead_link(laptop, box):
    run = laptop.start("gpu1")
    began = time.monotonic()
    happened: list[events.Event] = []
    for event in Follower(session_of(laptop.project, run, laptop.context)).follow():
        happened.append(event)
        if isinstance(event, events.StillWaiting) and time.monotonic() - began > 2 * link.SILENCE:
            box.open_gate()
    assert not any(isinstance(each, events.ConnectionLost) for each in happened)
    assert len(box.connections) == 1
    assert ended(happened).status is Status.COMPLETED


def test_a_far_side_that_promises_no_word_is_not_left_for_its_silence(laptop, box, monkeypatch):
    send = Connection.send

    def without(self: Connection, operation: str, fields: Any = None, body: bytes = b"") -> int:
        return send(self, operation, {key: fields[key] for key in fields or {} if key != "alive"}, body)

    monkeypatch.setattr(Connection, "send", without)
    test_a_run_that_says_nothing_for_long_is_not_taken_for_a_dead_link(laptop, box)


def test_a_far_side_that_sends_nonsense_is_not_followed_for_ever(laptop, box, monkeypatch):
    run = laptop.start("gpu1")
    next_push = Connection.next_push
    nonsense = Push("data", run, "driver_log", 1 << 40, b"x")

    def spoiled(self: Connection, timeout: float | None) -> Push | None:
        push = next_push(self, timeout)
        return nonsense if push is not None and push.kind == "level" else push

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "next_push", spoiled)
        with pytest.raises(HostError, match="`driver_log`") as caught:
            list(Follower(session_of(laptop.project, run, laptop.context)).follow())
    assert f"The run goes on. Follow it again: holdfast logs -f -r {run}" in caught.value.hint
    assert len(box.connections) <= 2 * len(link.TRIES)
    box.open_gate()
    laptop.look_until_ended(run)
    assert laptop.read(run).status is Status.COMPLETED


ANSWERS = {
    "a run that was not asked about": '{"push":"data","run":"other_1","file":"driver_log","offset":0}',
    "no answer in the answer": '{"id":1}',
    "another shape": '{"id":1,"ok":[]}',
    "a push of nothing": '{"push":"data"}',
}
FAKE = """
import sys
sys.path.insert(0, sys.argv[3])
from holdfast.farside.system import frames
import json
out = sys.stdout.buffer
out.write(frames.marker(sys.argv[1])); out.flush()
message, _ = frames.decode(sys.stdin.buffer.read)
if "push" in json.loads(sys.argv[2]):
    out.write(frames.encode({"id": message["id"], "ok": {"missing": {}}}))
out.write(frames.encode(json.loads(sys.argv[2]))); out.flush()
sys.stdin.read()
"""


@pytest.mark.parametrize("words", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_look_at_a_host_that_answers_nonsense_says_so(laptop, boxes, monkeypatch, words):
    from holdfast.hosts.connection import new_nonce

    run = laptop.start("gpu1")
    source = os.path.dirname(os.path.dirname(sys.modules["holdfast"].__file__ or ""))

    def connect(may_ask: bool = True) -> Connection:
        nonce = new_nonce()
        return Connection([sys.executable, "-c", FAKE, nonce, words, source], nonce)

    monkeypatch.setattr(boxes["gpu1"], "connect", connect)
    (told,) = laptop.look()
    assert isinstance(told, events.HostSilent)
    assert "he far side" in told.reason or "not understood" in told.reason
    assert not laptop.read(run).status.is_final
