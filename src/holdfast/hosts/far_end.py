"""The process that is, or leads to, the far end of a connection, and the two threads that read from it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from holdfast.errors import HoldfastError, Unreachable
from holdfast.farside.system import frames
from holdfast.frozen import dataclass

_KEPT_BEFORE = 2048


@dataclass(frozen=True)
class Said:
    """What is known of a far end that is not there: the exit code of what led to it (None while it lives), its
    stderr, and what came on stdout before the far side's first word."""

    code: int | None
    stderr: str
    before: str


class FarEnd:
    """`hand_over` gets, with this end, all that comes: what the far end says first (a line each), then frames, None at
    the end of the stream, an error where it is damaged. `supply` is sent where the far end says that it needs it."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str] | None,
        nonce: str,
        hand_over: Callable[[object], None],
        supply: Callable[[], bytes] | None,
    ) -> None:
        # A session of its own: Ctrl-C in the terminal is for the client, which detaches, and not for the far side.
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        for stream in (self._process.stdin, self._process.stdout):
            _widen(stream)
        self._nonce, self._hand_over, self._supply = nonce, hand_over, supply
        self._ear = _Ear(_present(self._process.stdout).detach())  # type: ignore[attr-defined] # it is buffered
        self._stdout = io.BufferedReader(self._ear)
        self._complaints: list[bytes] = []
        self._before = b""
        self._readers = [
            threading.Thread(target=self._read_frames, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def heard_at(self) -> float:
        """When the last byte came, also one of an unfinished frame; on the monotonic clock."""
        return self._ear.heard_at

    @property
    def stdin(self) -> BinaryIO:
        return _present(self._process.stdin)

    def close(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def kill(self) -> None:
        """For an attempt that is given up: ends this process, not those that share its connection."""
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
        stdout = self._stdout
        try:
            while True:
                line = self._skip_to_marker(stdout)
                self._hand_over((self, line))
                if line is None:
                    return
                if line.strip() == "need" and self._supply is not None:
                    self.stdin.write(self._supply())
                    self.stdin.flush()
                if not line.strip():
                    break
            while True:
                frame = frames.decode(stdout.read)
                self._hand_over((self, frame))
                if frame is None:
                    return
        except frames.Cut:
            self._hand_over((self, None))
        except frames.FrameError as error:
            self._hand_over((self, Unreachable(f"The connection to the far side is damaged: {error}.", "Try again.")))
        except HoldfastError as error:  # what was to be sent is not there any more
            self._hand_over((self, error))
        except (OSError, ValueError):
            self._hand_over((self, None))
        finally:
            stdout.close()
            self._process.wait()

    def _skip_to_marker(self, stream: BinaryIO) -> str | None:
        """Pass over whatever a login shell printed before the far side's first line; the rest of that line. None at the
        end of the stream."""
        marker = frames.marker(self._nonce)[:-1]
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


class _Ear(io.RawIOBase):
    """Below a buffer, so that it knows of each part of a large frame that comes over a slow link."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.heard_at = time.monotonic()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        count = self._stream.readinto(buffer)
        self.heard_at = time.monotonic()
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def _widen(stream: Any) -> None:
    """Let a pipe hold a whole piece: large files come a third faster so. Where that is not allowed or not known, it
    stays as it is."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError, AttributeError):  # the name is there since Python 3.10
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, frames.CHUNK)


def _present(stream: Any) -> BinaryIO:
    if stream is None:
        raise ValueError("a stream of the far side is missing")
    found: BinaryIO = stream
    return found
