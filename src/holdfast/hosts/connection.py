"""The near end of the protocol: one process that is the far side (or the `ssh` to it), requests and pushes over its
streams."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from holdfast.errors import FarSideError, HoldfastError, HostError, StorageError, Unreachable
from holdfast.farside import frames
from holdfast.farside.prefix import prefix_checksum as prefix_checksum

PIECE = frames.CHUNK
"""Bytes of a file that travel in one frame."""
STORAGE_HINT = "Check the free space and the permissions of Holdfast's folder there (HOLDFAST_HOME, else ~/.holdfast)."
NO_ROOM = (28, 30, 122)
"""Linux's numbers of what a folder over there says that takes nothing more: ENOSPC, EROFS, EDQUOT."""
_KEPT_BEFORE = 2048


@dataclass(frozen=True)
class Push:
    """What the far side sends by itself: new bytes of a run's file, `restart` of one, or that the run has `ended`."""

    kind: str
    run_id: str
    file: str
    offset: int
    data: bytes


class Said(NamedTuple):
    """What is known of a far end that is not there: the exit code of what led to it (None while it lives), its
    stderr, and what came on stdout before the far side's first word."""

    code: int | None
    stderr: str
    before: str


class Asked(NamedTuple):
    """A question that has to be answered before the far side can start; `answer` is called in the thread that waits
    for the connection."""

    answer: Callable[[], None]


@dataclass(frozen=True)
class Remote:
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


class Connection:
    """Not for use from several threads. Close it, or use it in a `with`."""

    def __init__(
        self,
        argv: Sequence[str],
        nonce: str,
        environment: Mapping[str, str] | None = None,
        remote: Remote | None = None,
    ) -> None:
        self._nonce, self._environment, self._remote = nonce, environment, remote
        # Bounded, so that a far side that sends faster than anybody takes it waits, and memory stays small.
        self._items: queue.Queue[Any] = queue.Queue(64)
        self._pushes: list[Push] = []
        self._answers: dict[int, tuple[frames.Message, bytes]] = {}
        self._number = 0
        self._attempt = 0
        self._is_closed = False
        # Nothing is sent through a login shell before the far side has spoken: a start-up file might swallow it.
        self._is_ready = remote is None
        self._end = _End(argv, self)

    def request(self, operation: str, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Any:
        """Send one request and wait for its answer. Raises FarSideError, StorageError, or HostError when the link is
        gone."""
        return self.answer(self.send(operation, fields, body))

    def send(self, operation: str, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> int:
        """Send without waiting, so that requests can be pipelined; `answer` takes them in any order."""
        self._become_ready()
        self._number += 1
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

    def answer_with_body(self, number: int) -> tuple[Any, bytes]:
        while number not in self._answers:
            self._receive(None)
        message, body = self._answers.pop(number)
        try:
            if "error" not in message:
                return message["ok"], body
            error = self._translated(message["error"])
        except (KeyError, TypeError, AttributeError):
            raise HostError("The far side sent an answer that says neither yes nor no.") from None
        raise error

    def next_push(self, timeout: float | None) -> Push | None:
        """The next push, or None when none came in time. Raises HostError when the link is gone."""
        while not self._pushes:
            if not self._receive(timeout):
                return None
        return self._pushes.pop(0)

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
        """Close, and wait until what led there is gone: unless it was shared, the login over there has ended then."""
        self.close()
        self._end.wait(patience)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hand_over(self, item: object) -> None:
        """For other threads: give something to whoever waits here. Waits until there is room; once the connection is
        closed nobody will take it."""
        while not self._is_closed:
            try:
                self._items.put(item, timeout=0.2)
            except queue.Full:
                continue
            return

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
            self._end = _End(remote.others[self._attempt], self)
            self._attempt += 1
            began = time.monotonic()

    def _receive(self, timeout: float | None) -> bool:
        """Put the next thing that came where it belongs. False when none came in time."""
        try:
            item = self._items.get(timeout=timeout)
        except queue.Empty:
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
                file, offset = str(message.get("file", "")), int(message.get("offset", 0))
                self._pushes.append(Push(message["push"], message["run"], file, offset, body))
            else:
                self._answers[message["id"]] = message, body
        except (KeyError, TypeError, ValueError):
            raise HostError("The far side sent a frame that is no answer and no news.") from None

    def _translated(self, error: Mapping[str, Any]) -> HoldfastError:
        if self._remote is not None and error["kind"] == "storage" and error.get("errno") in NO_ROOM:
            return self._remote.refuse("cannot", f"{error['errno']} {error.get('path')}")
        return _translated(error)

    def _gone(self) -> HoldfastError:
        said = self._end.said()
        if self._remote is not None:
            return self._remote.explain(said)
        lines = said.stderr.splitlines()
        reason = lines[-1] if lines else "it said nothing"
        return Unreachable(f"The far side is gone: {reason}", said.stderr if len(lines) > 1 else "")

    def greet(self, stdin: BinaryIO, line: str) -> None:
        """For the reading thread: what the far end said first; what it needs is sent from there."""
        if line.strip() == "need" and self._remote is not None:
            stdin.write(self._remote.supply())
            stdin.flush()

    @property
    def nonce(self) -> str:
        return self._nonce

    @property
    def environment(self) -> Mapping[str, str] | None:
        return self._environment


class _End:
    """The process that is, or leads to, the far end, and the two threads that read from it."""

    def __init__(self, argv: Sequence[str], connection: Connection) -> None:
        # A session of its own: Ctrl-C in the terminal is for the client, which detaches, and not for the far side.
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if connection.environment is None else dict(connection.environment),
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        for stream in (self._process.stdin, self._process.stdout):
            _widen(stream)
        self._connection = connection
        self._complaints: list[bytes] = []
        self._before = b""
        self._readers = [
            threading.Thread(target=self._read_frames, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def stdin(self) -> BinaryIO:
        return _present(self._process.stdin)

    def close(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def kill(self) -> None:
        """For an attempt that is given up: this process, not whatever it shares a connection with."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self.close()

    def wait(self, patience: float) -> None:
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()

    def said(self) -> Said:
        for reader in self._readers[::-1]:
            if reader is not threading.current_thread():
                reader.join(1.0)
        stderr = b"".join(self._complaints).decode("utf-8", "replace").strip()
        return Said(self._process.poll(), stderr, self._before.decode("utf-8", "replace"))

    def _read_frames(self) -> None:
        stdout = _present(self._process.stdout)
        hand_over = self._connection.hand_over
        try:
            while True:
                line = self._skip_to_marker(stdout)
                hand_over((self, line))
                if line is None:
                    return
                self._connection.greet(self.stdin, line)
                if not line.strip():
                    break
            while True:
                frame = frames.decode(stdout.read)
                hand_over((self, frame))
                if frame is None:
                    return
        except frames.Cut:
            hand_over((self, None))
        except frames.FrameError as error:
            hand_over((self, Unreachable(f"The connection to the far side is damaged: {error}.", "Try again.")))
        except (OSError, ValueError):
            hand_over((self, None))
        finally:
            stdout.close()
            self._process.wait()

    def _skip_to_marker(self, stream: BinaryIO) -> str | None:
        """Pass over whatever a login shell printed before the far side's first line; the rest of that line. None at the
        end of the stream."""
        marker = frames.marker(self._connection.nonce)[:-1]
        seen = b""
        while not seen.endswith(marker):
            byte = stream.read(1)
            if not byte:
                self._before = seen
                return None
            seen = (seen + byte)[-_KEPT_BEFORE:]
        return stream.readline(_KEPT_BEFORE).decode("utf-8", "replace")

    def _read_complaints(self) -> None:
        with _present(self._process.stderr) as stream:
            for line in stream:
                self._complaints = [*self._complaints[-39:], line]


def new_nonce() -> str:
    return os.urandom(8).hex()


def encode_secrets(values: Mapping[str, str]) -> bytes:
    return json.dumps(dict(values)).encode() if values else b""


def _widen(stream: Any) -> None:
    """Let a pipe hold a whole piece: large files come a third faster so. Where that is not allowed or not known, it
    stays as it is."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError, AttributeError):  # the name is there since Python 3.10
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, PIECE)


def _present(stream: Any) -> BinaryIO:
    if stream is None:
        raise ValueError("a stream of the far side is missing")
    found: BinaryIO = stream
    return found


def _translated(error: Mapping[str, str]) -> FarSideError | StorageError:
    if error["kind"] == "destination":
        return StorageError(error["message"], error["hint"] or "Check the free space and the permissions there.")
    if error["kind"] == "storage":
        return StorageError(error["message"], error["hint"] or STORAGE_HINT)
    return FarSideError(error["kind"], error["message"], error["hint"])
