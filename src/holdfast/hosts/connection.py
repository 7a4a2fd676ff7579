"""The near end of the protocol: one process that is the far side (or the `ssh` to it), requests and pushes over its
streams."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import Empty
from typing import Annotated, Any

from holdfast.codec import Between, Malformed, decode
from holdfast.errors import FarSideError, HoldfastError, HostError, StorageError, Unreachable
from holdfast.farside.system import frames
from holdfast.farside.system.digests import prefix_checksum as prefix_checksum
from holdfast.frozen import dataclass
from holdfast.hosts.far_end import FarEnd, Said
from holdfast.hosts.inbox import Inbox

PIECE = frames.CHUNK
"""Bytes of a file that travel in one frame."""
_STORAGE_HINT = "Check the free space and the permissions of Holdfast's folder there (HOLDFAST_HOME, else ~/.holdfast)."
MOST_PUSHED = 64 << 20
"""Bytes of news that are kept while an answer is waited for."""
_PUSH = 400
"""Bytes that each takes besides."""
_FOLLOWED = ("data", "restart", "ended", "level", "alive", "progress", "problem")
_LONGEST = 4000
"""Characters of an error's text."""
NO_ROOM = (28, 30, 122)
"""Linux's error numbers of a folder on the host that cannot be written to: ENOSPC, EROFS, EDQUOT."""


@dataclass(frozen=True)
class Push:
    """What the far side sends unrequested: new bytes of a run's file, `restart` of one, or that the run has `ended`."""

    kind: str
    run_id: str
    file: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class _PushHead:
    push: str
    run: str
    file: str = ""
    offset: Annotated[int, Between(0, 1 << 63)] = 0


@dataclass(frozen=True)
class _Complaint:
    """`errno` and `path`: of a disk there."""

    kind: str
    message: str
    hint: str
    errno: int | None = None
    path: str = ""


@dataclass(frozen=True)
class Asked:
    """A question that has to be answered before the far side can start; `answer` is called in the thread that waits
    for the connection."""

    answer: Callable[[], None]


@dataclass(frozen=True)
class RemoteLink:
    """What a connection needs where another machine is in between.

    `others`: what to start instead when the first (then the next) leads nowhere, or nothing was heard within `patience`
    seconds.
    `supply`: the far side itself, sent where the other end says that it needs it. `explain` and `refuse` make the
    error of an end that is gone, or that said a word instead of starting. `closed` is called once, at the end."""

    others: Sequence[Sequence[str]]
    patience: Sequence[float | None]
    supply: Callable[[], bytes]
    explain: Callable[[Said], HoldfastError]
    refuse: Callable[[str, str], HoldfastError]
    silent: Callable[[float], HoldfastError]
    closed: Callable[[], None]


@dataclass(frozen=True)
class Carrier:
    """How a port of a host comes to this machine: the command that carries it to a port here for as long as it lives,
    its variables, and what its end means."""

    argv: Callable[[int], list[str]]
    environment: Mapping[str, str]
    explain: Callable[[Said], HoldfastError]


class Connection:
    """Not for use from several threads. Close it, or use it in a `with`."""

    def __init__(
        self,
        argv: Sequence[str],
        nonce: str,
        environment: Mapping[str, str] | None = None,
        remote: RemoteLink | None = None,
    ) -> None:
        self._nonce, self._environment, self._remote = nonce, environment, remote
        self._inbox = Inbox()
        self._pushes: deque[Push] = deque()
        self._pushed = 0
        self.spill: Callable[[Push], object] | None = None
        """Takes what was pushed of followed files while an answer is waited for, before it becomes too much."""
        self._due: set[int] = set()
        self._answers: dict[int, tuple[frames.Message, bytes]] = {}
        self._number = 0
        self._attempt = 0
        self._is_closed = False
        # Nothing is sent through a login shell before the far side has spoken: a start-up file might swallow it.
        self._is_ready = remote is None
        self._end = self._started(argv)

    def request(self, operation: str, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Any:
        """Send one request and wait for its answer. Raises FarSideError, StorageError, or HostError when the link is
        gone."""
        return self.answer(self.send(operation, fields, body))

    def send(self, operation: str, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> int:
        """Send without waiting, so that requests can be pipelined; `answer` takes them in any order."""
        self._become_ready()
        self._number += 1
        self._due.add(self._number)
        try:
            stdin = self._end.stdin
            stdin.write(frames.encode({**(fields or {}), "id": self._number, "op": operation}, body))
            stdin.flush()
        except frames.FrameError as error:
            raise HostError(f"The request `{operation}` does not fit into a frame: {error}.") from error
        except (OSError, ValueError):
            raise self._gone() from None
        return self._number

    def answer(self, number: int) -> Any:
        return self.answer_with_body(number)[0]

    def has_answer(self, number: int, timeout: float) -> bool:
        """Whether the answer is there; returns when it is, or when nothing came for so long."""
        while number not in self._answers:
            if not self._receive(timeout):
                return False
        return True

    def quiet(self) -> float:
        """Seconds since the last byte came, also one of an unfinished frame."""
        return time.monotonic() - self._end.heard_at

    def answer_with_body(self, number: int) -> tuple[Any, bytes]:
        while number not in self._answers:
            self._receive(None)
        message, body = self._answers.pop(number)
        try:
            if "error" not in message:
                return message["ok"], body
            error = self._translated(message["error"])
        except (KeyError, Malformed):
            raise HostError("The far side sent an answer that says neither yes nor no.") from None
        raise error

    def next_push(self, timeout: float | None) -> Push | None:
        """The next push, or None when none came in time. Raises HostError when the link is gone."""
        while not self._pushes:
            if not self._receive(timeout):
                return None
        return self._next()

    def close(self) -> None:
        """A repeat changes nothing. Does not wait for the far process: it ends by itself when its stdin is closed,
        and the thread that reads from it reaps it."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_ready:
            self._end.close()
        else:
            self._end.kill()  # a login that hangs would not notice
        if self._remote is not None:
            self._remote.closed()

    def finish(self, patience: float = 10.0) -> None:
        """Close, and wait until the process that led to the host has ended: its login, unless shared, has ended too."""
        self.close()
        self._end.wait(patience)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hand_over(self, item: object, weight: int = 0) -> bool:
        """For other threads: give something to the thread that waits here. Waits until there is room for its `weight`;
        once the connection is closed it is not taken, and this returns False."""
        while not self._is_closed:
            if self._inbox.put(item, weight, 0.2):
                return True
        return False

    def _started(self, argv: Sequence[str]) -> FarEnd:
        supply = self._remote.supply if self._remote is not None else None
        return FarEnd(argv, self._environment, self._nonce, self.hand_over, supply)

    def _become_ready(self) -> None:
        """Wait for the far side's first word, answering what ssh asks meanwhile."""
        remote = self._remote
        if self._is_ready or remote is None:
            return
        began = time.monotonic()
        while not self._is_ready:
            patience = remote.patience[self._attempt]
            left = None if patience is None else max(0.0, began + patience - time.monotonic())
            try:
                if self._receive(left):
                    began = time.monotonic()  # a person may have thought about an answer
                    continue
                failure: HoldfastError = remote.silent(patience or 0.0)
            except Unreachable as error:
                failure = error
            self._end.kill()
            if self._attempt == len(remote.others):
                raise failure
            self._end = self._started(remote.others[self._attempt])
            self._attempt += 1
            began = time.monotonic()

    def _receive(self, timeout: float | None) -> bool:
        """Put the next thing that came where it belongs. False when none came in time."""
        try:
            item: Any = self._inbox.get(timeout)
        except Empty:
            return False
        match item:
            case Asked():
                item.answer()
            case (end, _) if end is not self._end:
                pass  # of an attempt that was given up
            case (_, None):
                raise self._gone()
            case (_, HoldfastError() as error):
                raise error
            case (_, str(word)):
                self._hear(word)
            case (_, (message, body)):
                self._take(message, body)
        return True

    def _hear(self, line: str) -> None:
        """The first words of the far end: nothing more than the marker when it is ready."""
        word, _, rest = line.strip().partition(" ")
        if word == "":
            self._is_ready = True
        elif word != "need" and self._remote is not None:
            raise self._remote.refuse(word, rest)

    def _take(self, message: frames.Message, body: bytes) -> None:
        try:
            if "push" in message:
                head = decode(_PushHead, message)
                self._add(Push(head.push, head.run, head.file, head.offset, body))
            else:
                self._due.remove(message["id"])  # once for each request
                self._answers[message["id"]] = message, body
        except (KeyError, TypeError, Malformed):
            raise HostError("The far side sent a frame that is no answer and no news.") from None

    def _add(self, push: Push) -> None:
        self._pushes.append(push)
        self._pushed += _weight(push)
        while self._pushed > MOST_PUSHED:
            if self.spill is None or self._pushes[0].kind not in _FOLLOWED:
                raise HostError(
                    f"The machine sent more than {MOST_PUSHED >> 20} MB before it answered.",
                    "Run the command again. If that does not help, check the machine: "
                    "holdfast computetarget check NAME",
                )
            self.spill(self._next())

    def _next(self) -> Push:
        push = self._pushes.popleft()
        self._pushed -= _weight(push)
        return push

    def _translated(self, found: Any) -> HoldfastError:
        """The one place where the words of another machine become an error."""
        error = decode(_Complaint, found)
        kind, message, hint = (each[:_LONGEST] for each in (error.kind, error.message, error.hint))
        if self._remote is not None and kind == "storage" and error.errno in NO_ROOM:
            return self._remote.refuse("cannot", f"{error.errno} {error.path}")
        if kind == "destination":
            return StorageError(message, hint or "Check the free space and the permissions there.")
        return StorageError(message, hint or _STORAGE_HINT) if kind == "storage" else FarSideError(kind, message, hint)

    def _gone(self) -> HoldfastError:
        said = self._end.said()
        if self._remote is not None:
            return self._remote.explain(said)
        lines = said.stderr.splitlines()
        reason = lines[-1] if lines else "it said nothing"
        return Unreachable(f"The far side is gone: {reason}", said.stderr if len(lines) > 1 else "")


def _weight(push: Push) -> int:
    return len(push.data) + len(push.file) + len(push.run_id) + _PUSH


def new_nonce() -> str:
    return os.urandom(8).hex()
