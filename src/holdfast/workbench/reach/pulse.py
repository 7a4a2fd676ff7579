"""Noticing that a link died without a word. ssh does not notice by itself when it shares a connection of the user's
own, so the far side is asked to say now and then that it is there."""

from __future__ import annotations

from typing import TypeVar

from holdfast.errors import Unreachable
from holdfast.hosts.client import Reply
from holdfast.hosts.connection import Connection, Push

PULSE, SILENCE = 10.0, 45.0
"""Seconds after which a host is to say that it is there, and without a byte after which the link to it is dead."""
_Value = TypeVar("_Value")
_MOMENT = 1.0
"""If it is this process that was stopped, what has come meanwhile is there so much later."""


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
