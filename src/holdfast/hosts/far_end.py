"""The process that is, or leads to, the far end of a connection, and the threads that read from it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from holdfast.errors import HoldfastError, HostError, Unreachable
from holdfast.farside.system import frames
from holdfast.frozen import dataclass
from holdfast.hosts.complaints import Complaints

_KEPT_BEFORE = 2048
MOST_BEFORE = 4 << 20
"""Bytes that a login shell may print before the far side's first word."""
_MOST_WORDS = 8
"""That the far end says before it is ready."""
_MOST_UNTAKEN = 64 << 20
"""Bytes that are still read when the connection has been closed: of what was on its way."""
_HEADER = 16
"""Bytes of memory that a byte of a frame's header may take as a value."""


@dataclass(frozen=True)
class Said:
    """What is known of a far end that is not there: the exit code of what led to it (None while it lives), its
    stderr, and what came on stdout before the far side's first word."""

    code: int | None
    stderr: str
    before: str


class FarEnd:
    """`hand_over` gets all that comes, with this end and the memory that it takes. First come lines that the far end
    says, then frames. None stands for the end of the stream, an error for a damaged one. `hand_over` returns when there
    is room, and nothing more is read before. `supply` is sent where the far end says that it needs it."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str] | None,
        nonce: str,
        hand_over: Callable[[object, int], bool],
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
        self._complaints = Complaints(self._process.stderr)
        self._before = b""
        self._reader = threading.Thread(target=self._read_frames, daemon=True)
        self._reader.start()

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
        self._complaints.join(1.0)
        if self._reader is not threading.current_thread():
            self._reader.join(1.0)
        return Said(self._process.poll(), self._complaints.text(), self._before.decode("utf-8", "replace"))

    def _read_frames(self) -> None:
        stdout = self._stdout
        try:
            if self._hear_words(stdout):
                self._hear_frames(stdout)
        except frames.Cut:
            self._tell(None)
        except frames.FrameError as error:
            self._tell(Unreachable(f"The connection to the far side is damaged: {error}.", "Try again."))
        except HoldfastError as error:  # also: what was to be sent is not there any more
            self._tell(error)
        except (OSError, ValueError):
            self._tell(None)
        finally:
            stdout.close()
            self._process.wait()

    def _tell(self, item: object, weight: int = 0) -> bool:
        return self._hand_over((self, item), weight)

    def _hear_words(self, stdout: BinaryIO) -> bool:
        """Whether frames follow."""
        for _ in range(_MOST_WORDS):
            line = self._skip_to_marker(stdout)
            self._tell(line)
            if line is None:
                return False
            if not line.strip():
                return True
            if line.strip() == "need" and self._supply is not None:
                self.stdin.write(self._supply())
                self.stdin.flush()
        raise HostError(
            f"The machine asked for Holdfast's program {_MOST_WORDS} times and did not start it.",
            "Check the machine: holdfast computetarget check NAME",
        )

    def _hear_frames(self, stdout: BinaryIO) -> None:
        size = untaken = 0

        def read(count: int) -> bytes:
            nonlocal size
            data = stdout.read(count)
            size += len(data)
            return data

        while True:
            size = 0
            frame = frames.decode(read)
            is_taken = self._tell(frame, 0 if frame is None else len(frame[1]) + _HEADER * (size - len(frame[1])))
            untaken += 0 if is_taken else size
            if frame is None:
                return
            if untaken > _MOST_UNTAKEN:  # it was told to end, and goes on
                self.kill()
                return

    def _skip_to_marker(self, stream: BinaryIO) -> str | None:
        """Pass over whatever a login shell printed before the far side's first line; the rest of that line. None at the
        end of the stream."""
        marker = frames.marker(self._nonce)[:-1]
        seen = b""
        for _ in range(MOST_BEFORE):
            if seen.endswith(marker):
                return stream.readline(_KEPT_BEFORE).decode("utf-8", "replace")
            byte = stream.read(1)
            if not byte:
                self._before = seen
                return None
            seen = (seen + byte)[-_KEPT_BEFORE:]
        raise HostError(
            f"The login shell printed over {MOST_BEFORE >> 20} MB before Holdfast could start.",
            "Find what its start-up files print (~/.bashrc, ~/.profile), and have them print it in terminals only.",
        )


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
