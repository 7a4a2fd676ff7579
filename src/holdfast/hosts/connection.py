"""The near end of the protocol: one process that is the far side (or the `ssh` to it), requests and pushes over its
streams."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from holdfast.errors import FarSideError, HostError, StorageError
from holdfast.farside import frames
from holdfast.farside.prefix import prefix_checksum as prefix_checksum

PIECE = frames.CHUNK
"""Bytes of a file that travel in one frame."""
STORAGE_HINT = "Check the free space and the permissions of Holdfast's folder there (HOLDFAST_HOME, else ~/.holdfast)."


@dataclass(frozen=True)
class Push:
    """What the far side sends by itself: new bytes of a run's file, `restart` of one, or that the run has `ended`."""

    kind: str
    run_id: str
    file: str
    offset: int
    data: bytes


class Connection:
    """Not for use from several threads. Close it, or use it in a `with`."""

    def __init__(self, argv: Sequence[str], nonce: str, environment: Mapping[str, str] | None = None) -> None:
        # A session of its own: Ctrl-C in the terminal is for the client, which detaches, and not for the far side.
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
        self._nonce = nonce
        self._is_closed = False
        # Bounded, so that a far side that sends faster than anybody takes it waits, and memory stays small.
        self._frames: queue.Queue[tuple[frames.Message, bytes] | HostError | None] = queue.Queue(64)
        self._pushes: list[Push] = []
        self._answers: dict[int, tuple[frames.Message, bytes]] = {}
        self._number = 0
        self._complaints: list[bytes] = []
        self._readers = [
            threading.Thread(target=self._read_frames, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def request(self, operation: str, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Any:
        """Send one request and wait for its answer. Raises FarSideError, StorageError, or HostError when the link is
        gone."""
        return self.answer(self.send(operation, fields, body))

    def send(self, operation: str, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> int:
        """Send without waiting, so that requests can be pipelined; `answer` takes them in any order."""
        self._number += 1
        try:
            stdin = self._stream(self._process.stdin)
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
        if "error" in message:
            raise _translated(message["error"])
        return message["ok"], body

    def next_push(self, timeout: float | None) -> Push | None:
        """The next push, or None when none came in time. Raises HostError when the link is gone."""
        while not self._pushes:
            if not self._receive(timeout):
                return None
        return self._pushes.pop(0)

    def close(self) -> None:
        """A repeat changes nothing. Does not wait for the far process: it ends by itself when its stdin is closed,
        and the thread that reads from it reaps it."""
        self._is_closed = True
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, timeout: float | None) -> bool:
        """Put the next frame where it belongs. False when none came in time."""
        try:
            item = self._frames.get(timeout=timeout)
        except queue.Empty:
            return False
        if item is None:
            raise self._gone()
        if isinstance(item, HostError):
            raise item
        message, body = item
        if "push" in message:
            file, offset = str(message.get("file", "")), int(message.get("offset", 0))
            self._pushes.append(Push(message["push"], message["run"], file, offset, body))
        else:
            self._answers[message["id"]] = message, body
        return True

    def _read_frames(self) -> None:
        stdout = self._stream(self._process.stdout)
        try:
            if not _skip_to(stdout, frames.marker(self._nonce)):
                self._hand_over(None)
                return
            while True:
                frame = frames.decode(stdout.read)
                self._hand_over(frame)
                if frame is None:
                    return
        except frames.FrameError as error:
            self._hand_over(HostError(f"The connection to the far side is damaged: {error}.", "Try again."))
        except (OSError, ValueError):
            self._hand_over(None)
        finally:
            stdout.close()
            self._process.wait()

    def _hand_over(self, item: tuple[frames.Message, bytes] | HostError | None) -> None:
        """Wait until there is room; once the connection is closed nobody will take it."""
        while not self._is_closed:
            try:
                self._frames.put(item, timeout=0.2)
            except queue.Full:
                continue
            return

    def _read_complaints(self) -> None:
        with self._stream(self._process.stderr) as stream:
            for line in stream:
                self._complaints = [*self._complaints[-19:], line]

    def _gone(self) -> HostError:
        self._readers[1].join(1.0)
        said = b"".join(self._complaints).decode("utf-8", "replace").strip()
        lines = said.splitlines()
        reason = lines[-1] if lines else "it said nothing"
        return HostError(f"The far side is gone: {reason}", said if len(lines) > 1 else "")

    @staticmethod
    def _stream(stream: Any) -> BinaryIO:
        if stream is None:
            raise ValueError("a stream of the far side is missing")
        found: BinaryIO = stream
        return found


def new_nonce() -> str:
    return os.urandom(8).hex()


def encode_secrets(values: Mapping[str, str]) -> bytes:
    return json.dumps(dict(values)).encode() if values else b""


def _skip_to(stream: BinaryIO, marker: bytes) -> bool:
    """Pass over whatever a login shell printed before the far side's first line."""
    seen = b""
    while not seen.endswith(marker):
        byte = stream.read(1)
        if not byte:
            return False
        seen = (seen + byte)[-len(marker) :]
    return True


def _translated(error: Mapping[str, str]) -> FarSideError | StorageError:
    if error["kind"] == "destination":
        return StorageError(error["message"], error["hint"] or "Check the free space and the permissions there.")
    if error["kind"] == "storage":
        return StorageError(error["message"], error["hint"] or STORAGE_HINT)
    return FarSideError(error["kind"], error["message"], error["hint"])
