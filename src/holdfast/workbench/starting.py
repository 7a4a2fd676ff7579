"""Starting a run on its host: what the host lacks, the start and the wish to follow travel together, and a link that
breaks meanwhile is settled by trying again: a run starts once, however often it is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.engines.engine import Order
from holdfast.errors import FarSideError, HoldfastError, HostError, StorageError
from holdfast.hosts.connection import Connection
from holdfast.snapshots.store import ObjectStore
from holdfast.workbench import contacts, events
from holdfast.workbench.following import Follower
from holdfast.workbench.reconnecting import TRIES, Patience
from holdfast.workbench.sending import Sender
from holdfast.workbench.surroundings import Surroundings

CLOCK_OFF = 60.0


def start(
    follower: Follower, order: Order, secrets: Mapping[str, str], around: Surroundings, wait: bool
) -> Iterator[events.Event]:
    """Returns when the host owns the run. A run that certainly did not start is written down as that, and the error
    raised. `wait`: it will be followed, over the same connection."""
    attempt = _Attempt(follower, order, secrets, around, wait)
    patience = Patience(None if wait and not follower.product.host.is_here else len(TRIES), follower.run_id)
    while True:
        try:
            yield from attempt.make()
        except (FarSideError, StorageError) as error:  # the far side has answered: it did not start
            _never_started(follower, error)
            raise
        except HostError as error:
            if not attempt.was_reached:
                _never_started(follower, error)
                raise
            follower.disconnect()
            pause = _pause(patience, error, follower.run_id)
            yield events.ConnectionLost(error.message, pause)
            time.sleep(pause)
        else:
            return


def _never_started(follower: Follower, error: HoldfastError) -> None:
    """Written down for good: nobody has to ask the host about it again."""
    follower.write_end("not-started", error.message)
    for _ in follower.finish():
        pass


def _pause(patience: Patience, error: HostError, run_id: str) -> float:
    try:
        return patience.pause(error)
    except HostError as refusal:
        raise HostError(
            f"The connection broke while the run was being started: {refusal.message}",
            f"Whether it started: holdfast status -r {run_id}",
        ) from refusal


class _Attempt:
    def __init__(
        self, follower: Follower, order: Order, secrets: Mapping[str, str], around: Surroundings, wait: bool
    ) -> None:
        self._follower, self._order, self._secrets, self._around, self._wait = follower, order, secrets, around, wait
        self._asked: int | None = None
        self.was_reached = False
        """Whether the run may have started, or the host could be sent to: then it is worth trying again."""

    def make(self) -> Iterator[events.Event]:
        self._asked = None
        host, connection = self._follower.product.host, self._follower.connection()
        if host.is_here:
            self._ask(connection)
            self._await(connection)
            return
        project, snapshot = self._follower.project, self._order.plan.snapshot
        store = ObjectStore(project.state_directory / "objects")
        sender = Sender(connection, store, snapshot, contacts.read(project, host.name).snapshot)
        hello = connection.send("hello")  # raises where the host cannot be reached
        self.was_reached = True
        clock = _Clock(self._around.now())
        try:
            if sender.announce():
                self._ask(connection)
            clock.stop(connection.answer(hello), self._around.now())
            yield from self._send_rest(connection, sender)
        except (FarSideError, StorageError):
            if self._asked is None or not self._was_started(connection):
                raise
        self._follower.folders.write_clock(self._follower.run_id, host.name, clock.offset, clock.uncertainty)
        contacts.sent(project, host.name, snapshot, clock.offset, self._around.now())
        yield from clock.warnings(host.name)

    def _send_rest(self, connection: Connection, sender: Sender) -> Iterator[events.Event]:
        yield from sender.complete()
        if self._asked is None:
            self._ask(connection)
        sender.confirm()
        try:
            self._await(connection)
        except FarSideError as error:
            if error.kind != "incomplete":
                raise
            self._follower.withdraw()
            self._ask(connection)
            self._await(connection)

    def _ask(self, connection: Connection) -> None:
        self.was_reached = True
        self._asked = self._follower.product.engine.send_start(connection, self._order, self._secrets)
        if self._wait:
            self._follower.ask()

    def _await(self, connection: Connection) -> None:
        number, self._asked = self._asked, None
        if number is not None:
            self._follower.product.engine.await_start(connection, number)

    def _was_started(self, connection: Connection) -> bool:
        """Something before the start was refused: the answer to the start itself is what counts."""
        try:
            self._await(connection)
        except (FarSideError, StorageError):
            return False
        return True


class _Clock:
    """How far the host's clock is off: its time against the middle between question and answer."""

    def __init__(self, asked: float) -> None:
        self._asked = asked
        self.offset = self.uncertainty = 0.0

    def stop(self, facts: Any, answered: float) -> None:
        try:
            there = float(facts["time"])
        except (KeyError, TypeError, ValueError):
            raise HostError("The far side says a time that is none.") from None
        self.uncertainty = round(max(0.0, answered - self._asked) / 2, 6)
        self.offset = round(there - (self._asked + answered) / 2, 6)

    def warnings(self, host: str) -> Iterator[events.Event]:
        if abs(self.offset) - self.uncertainty > CLOCK_OFF:
            from holdfast.project.durations import format_duration

            way = "ahead of" if self.offset > 0 else "behind"
            yield events.Warned(
                f"The clock of {host} is {format_duration(round(abs(self.offset)))} {way} this machine's.",
                "Times of the run are that machine's. Its administrator can mend it: timedatectl set-ntp true",
            )
