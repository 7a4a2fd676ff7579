"""The link to a host: noticing that it died without a word, and how long to try again when it broke.

ssh does not notice a dead link when it shares a connection of the user's own, so the far side is asked to say now and
then that it is there."""

from __future__ import annotations

from typing import TypeVar

from holdfast.errors import ElsewhereError, FarSideError, HostError, HostKeyRefused, LoginNeeded, Unreachable
from holdfast.hosts.client import Reply
from holdfast.hosts.connection import Connection, Push

TRIES = (0.2, 1.0, 2.0, 5.0, 10.0)
"""Seconds before each try."""
PULSE, SILENCE = 10.0, 45.0
"""Seconds after which a host is to say that it is there, and without a byte after which the link to it is dead."""
_Value = TypeVar("_Value")
_MOMENT = 1.0
"""Seconds in which what came while this process was stopped is read."""


class Patience:
    """`tries` None: for ever, where a link broke; whatever else is wrong with a host is not fixed by waiting, and is
    tried a few times all the same. `advice` is added to the hint of the error that ends it. `progress`: how much has
    been reached already (bytes at home, times that a port was open)."""

    def __init__(self, tries: int | None, advice: str = "", progress: int = 0) -> None:
        self._tries, self._advice, self._most = tries, advice, progress
        self._failures = 0

    def pause(self, error: HostError, progress: int = 0) -> float:
        """Seconds until the next try, longer each time until more was reached than ever. Raises where another one can
        bring nothing."""
        if isinstance(error, FarSideError | ElsewhereError):
            raise error
        if isinstance(error, LoginNeeded | HostKeyRefused):
            raise self._given_up(error)
        if progress > self._most:
            self._most, self._failures = progress, 0
        tries = self._tries
        if not isinstance(error, Unreachable):
            tries = len(TRIES) if tries is None else min(tries, len(TRIES))
        if tries is not None and self._failures >= tries:
            raise self._given_up(error)
        pause = TRIES[min(self._failures, len(TRIES) - 1)]
        self._failures += 1
        return pause

    def _given_up(self, error: HostError) -> HostError:
        error.hint = f"{error.hint}\n{self._advice}".strip()
        return error


def wait(reply: Reply[_Value], connection: Connection, host: str) -> _Value:
    """For operations during which the far side says that it is there, or that take it no time. Raises what
    `Reply.wait` does, and Unreachable where something must have been heard."""
    while not reply.is_here(SILENCE):
        if not reply.is_here(min(_MOMENT, SILENCE)):
            _require_life(connection, host)
    return reply.wait()


def next_push(connection: Connection, host: str, wait: float | None, has_pulse: bool) -> Push | None:
    """None when none came in time, or only part of one that is on its way. Raises Unreachable where something must have
    been heard, if the link were alive."""
    if not has_pulse or (wait is not None and wait <= SILENCE):
        return connection.next_push(wait)
    push = connection.next_push(SILENCE) or connection.next_push(min(_MOMENT, SILENCE))
    if push is None:
        _require_life(connection, host)
    return push


def _require_life(connection: Connection, host: str) -> None:
    if connection.quiet() >= SILENCE:
        raise Unreachable(f"Nothing was heard of {host} for {SILENCE:g} s.", "Try again.")
