"""Starting a run on its host: what the host lacks, the start and the wish to follow travel together, and a link that
breaks meanwhile is settled by trying again: a run starts once, however often it is asked for.

The run's record says where it may start before it is sent, and nothing but that place starts it: a later client
knows whom to ask."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, NamedTuple

from holdfast.codec import encode
from holdfast.errors import ElsewhereError, FarSideError, HoldfastError, HostError, ProjectError, StorageError
from holdfast.hosts.client import Reply
from holdfast.hosts.replies import Hello, Started
from holdfast.model import Place
from holdfast.plan import Plan
from holdfast.project.quantities import format_duration
from holdfast.shown_text import pasted
from holdfast.snapshots.store import ObjectStore
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.outputs import collect
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.reach.contacts import CLOCK_OFF
from holdfast.workbench.reach.link import Patience
from holdfast.workbench.submitting.run_plan import SentData
from holdfast.workbench.submitting.send import Sender


class Order(NamedTuple):
    """What is to be started, and the run's records as JSON, which the host keeps for clients that did not submit it.
    `place`: the only one that may start it, None for whichever answers."""

    plan: Plan
    submission: Mapping[str, Any]
    configuration: Mapping[str, Any]
    place: Place | None = None
    data: tuple[SentData, ...] = ()
    """What the host may have to be sent beside the snapshot."""

    def as_json(self) -> dict[str, Any]:
        place = {} if self.place is None else {"place": [self.place.machine, self.place.folder]}
        return {
            "plan": encode(self.plan),
            "submission": self.submission,
            "configuration": self.configuration,
            **place,
        }


def start(
    session: Session, order: Order, secrets: Mapping[str, str], wait: bool
) -> Generator[events.Event, None, str | None]:
    """Returns when the host owns the run: what its engine says of a run that waits for it, None of any other. A run
    that certainly did not start is recorded as that, and the error raised. `wait`: it will be followed, over the same
    connection."""
    attempt, patience = _Attempt(session, order, secrets, wait), session.patience(is_followed=wait)
    while True:
        try:
            yield from attempt.make()
        except ElsewhereError:
            raise
        except (FarSideError, StorageError) as error:
            if attempt.may_have_started(error):
                if _has_begun(session, error):
                    return None
            else:  # the far side has answered: it did not start
                _never_started(session, error)
            raise
        except ProjectError as error:  # a file that had to be sent was changed
            _never_started(session, error)
            raise
        except HostError as error:
            if not attempt.was_reached:
                _never_started(session, error)
                raise
            session.disconnect()
            pause = _pause(patience, error, session.run_id)
            yield events.ConnectionLost(session.run_id, error.message, pause)
            time.sleep(pause)
        else:
            return attempt.queued


def _never_started(session: Session, error: HoldfastError) -> None:
    """Recorded for good: the host need not be asked about it again."""
    session.write_end("not-started", error.message)
    for _ in collect(session):
        pass


def _has_begun(session: Session, error: HoldfastError) -> bool:
    """An earlier request to start was not answered, so only the host can say. A run that has not begun never will, and
    the host records that. Raises `error` with how to settle it later where the host cannot be asked now."""
    try:
        session.require_place()
        if not session.give_up(error.message):
            return True
        Follower(session).copy()
    except (HostError, StorageError):
        error.hint = f"{error.hint}\nWhether it started: holdfast status -r {pasted(session.run_id)}".strip()
        raise error from None
    return False


def _pause(patience: Patience, error: HostError, run_id: str) -> float:
    try:
        return patience.pause(error)
    except HostError as refusal:
        raise HostError(
            f"The connection broke while the run was being started: {refusal.message}",
            f"Whether it started: holdfast status -r {pasted(run_id)}",
        ) from refusal


class _Attempt:
    def __init__(self, session: Session, order: Order, secrets: Mapping[str, str], wait: bool) -> None:
        self._session, self._order, self._secrets, self._wait = session, order, secrets, wait
        self._attempts = 0
        self._asked: Reply[Started] | None = None
        self._is_unanswered = False  # a start of this attempt
        self._is_open = False  # one of an earlier attempt
        self.queued: str | None = None
        self.was_reached = False
        """Whether the run may have started, or the host could be sent to: then it is worth trying again."""

    def may_have_started(self, error: HoldfastError) -> bool:
        """In spite of `error`: an earlier attempt may have, or the far side itself does not know."""
        kind = error.kind if isinstance(error, FarSideError) else ""
        return kind == "unsettled" or (self._is_open and kind != "exists")

    def make(self) -> Iterator[events.Event]:
        self._attempts += 1
        self._is_open = self._is_open or self._is_unanswered
        self._asked, self._is_unanswered = None, False
        session, snapshot, now = self._session, self._order.plan.snapshot, self._session.context.now
        if session.host.is_here:
            yield from self._start_here()
            return
        contact = contacts.read(session.project, session.host.name)
        store = ObjectStore(session.project.state_directory / "objects")
        sender = Sender(session.connection(), store, snapshot, contact.snapshot)
        hello = session.far().hello()  # raises where the host cannot be reached
        self.was_reached = True
        meeting = _Meeting(hello, now)
        try:
            is_announced = sender.announce()
            self._choose_place(contact.place, meeting)
            if is_announced:
                self._ask()
            self._confirm_place(meeting.greeting().place)
            yield from sender.complete()
            if self._asked is None:
                self._ask()
            sender.confirm()
            yield from self._await_sending({"incomplete", "tools", "packages", "data"})
        except (FarSideError, StorageError):
            if self._asked is None or not self._was_started():
                raise
        session.folders.write_clock(session.run_id, session.host.name, meeting.offset, meeting.uncertainty)
        contacts.sent(session.project, session.host.name, snapshot, meeting.offset, now(), self._order.place)
        yield from meeting.warnings(session.host.name)

    def _start_here(self) -> Iterator[events.Event]:
        """This machine is the same one at the next attempt; its folder may be another one for a later look."""
        self._ask()
        hello = self._session.far().hello()
        yield from self._await_sending({"tools"})
        with contextlib.suppress(FarSideError, StorageError):  # it has started
            self._set_place(hello.wait().place)

    def _choose_place(self, last: Place | None, meeting: _Meeting) -> None:
        """Only this place may start the run. At first it is the one that answered the last time, so that nothing has to
        be waited for; if there is none, and after a broken attempt, it is the one that answers now."""
        if self._is_open:
            self._session.require_same(self._order.place, meeting.greeting().place)
        elif last is not None and self._attempts == 1:
            self._set_place(last)
        else:
            self._set_place(meeting.greeting().place)

    def _confirm_place(self, now: Place | None) -> None:
        """If another place answers than the last time, it has refused to start the run: nothing was begun anywhere."""
        place = self._order.place
        if place is None or (now is not None and place.is_same(now)):
            return
        if self._asked is not None:
            try:
                self._await()
            except FarSideError as error:
                if error.kind != "elsewhere":
                    raise
            if self._wait:
                self._session.heard()  # that the run is not there
        self._set_place(now)

    def _set_place(self, place: Place | None) -> None:
        if place is not None:
            self._session.folders.write_place(self._session.run_id, self._session.host.name, place)
        self._order = self._order._replace(place=place)

    def _await_sending(self, lacks: set[str]) -> Iterator[events.Event]:
        """Wait for the start. If it is refused because one of `lacks` is not there, send that and ask again."""
        while True:
            try:
                self._await()
            except FarSideError as error:
                if error.kind not in lacks:
                    raise
                lacks.remove(error.kind)  # each is sent once
                if self._wait:
                    self._session.heard()  # that the run is not there yet
                yield from self._send_lacking(error.kind)
                self._ask()
            else:
                return

    def _send_lacking(self, kind: str) -> Iterator[events.Event]:
        """What a host may lack beside the snapshot: it stays there for later runs."""
        connection, context = self._session.connection(), self._session.context
        environment = self._order.plan.environment
        if kind == "tools":
            from holdfast.workbench.submitting.tools import send_uv

            yield from send_uv(connection, context, self._session.host.is_here)
        if kind == "packages" and environment is not None and environment.packages is not None:
            from holdfast.workbench.submitting.ship_packages import send_packages

            yield from send_packages(connection, environment.packages, context)
        if kind == "data":
            from holdfast.workbench.submitting.given_data import send_data

            yield from send_data(connection, self._order.data)

    def _ask(self) -> None:
        self.was_reached = self._is_unanswered = True
        self._asked = self._session.far().start(self._order.as_json(), self._secrets)
        if self._wait:
            self._session.ask()

    def _await(self) -> None:
        reply, self._asked = self._asked, None
        if reply is None:
            return
        try:
            self.queued = reply.wait().queued
        except (FarSideError, StorageError):
            self._is_unanswered = False
            raise
        self._is_unanswered = False

    def _was_started(self) -> bool:
        """Something before the start was refused: the answer to the start itself is what counts."""
        try:
            self._await()
        except (FarSideError, StorageError):
            return False
        return True


class _Meeting:
    """The first words with a host, which are waited for when they are needed. They tell how far its clock is off: its
    time against the middle between question and answer."""

    def __init__(self, reply: Reply[Hello], now: Callable[[], float]) -> None:
        self._reply, self._now = reply, now
        self._asked = now()
        self._greeting: Hello | None = None
        self.offset = self.uncertainty = 0.0

    def greeting(self) -> Hello:
        if self._greeting is None:
            self._greeting = self._reply.wait()
            answered = self._now()
            self.uncertainty = round(max(0.0, answered - self._asked) / 2, 6)
            self.offset = round(self._greeting.time - (self._asked + answered) / 2, 6)
        return self._greeting

    def warnings(self, host: str) -> Iterator[events.Event]:
        if abs(self.offset) - self.uncertainty > CLOCK_OFF:
            way = "ahead of" if self.offset > 0 else "behind"
            yield events.Warned(
                f"The clock of {host} is {format_duration(round(abs(self.offset)))} {way} this machine's.",
                "Times of the run are that machine's. Its administrator can fix it: timedatectl set-ntp true",
            )
