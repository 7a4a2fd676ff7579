"""The copies of a command that `--processes-per-node` starts: `python processes_per_node.py N first|tag COMMAND …`.

Each copy gets what launchers such as torchrun give: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and a
free MASTER_PORT. What rank 0 prints is the output; of the others only what they said last before they failed, or with
`tag` each line with its rank. The first copy that fails ends the others, and its exit code is that of all.

It runs in containers too, by the run's Python, so it needs nothing but the standard library.
"""

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Dict, List, Optional

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL for copies that are left when one has failed."""
_KEPT = 64 * 1024
"""Bytes of what a silent copy said last."""
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def free_port() -> int:
    """One that the kernel gives to nobody else at once: it is not used again for a while."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def environment_of(rank: int, count: int, port: int) -> Dict[str, str]:
    mine = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": count,
        "LOCAL_WORLD_SIZE": count,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    return dict(os.environ, **{name: str(value) for name, value in mine.items()})


class Copy:
    """One process. `pipe` is read here unless its output is that of the run."""

    def __init__(self, rank: int, process: "subprocess.Popen[bytes]", is_tagged: bool) -> None:
        self.rank, self.process, self._is_tagged = rank, process, is_tagged
        self.pipe = process.stdout
        self._said = b""

    def hear(self) -> bool:
        """False at the end of its output."""
        assert self.pipe is not None  # noqa: S101 - asked only of copies with one
        data = os.read(self.pipe.fileno(), 1 << 16)
        self._said += data
        if self._is_tagged:
            whole, newline, self._said = self._said.rpartition(b"\n")
            if not data and self._said:
                whole, newline, self._said = self._said, b"\n", b""
            _print(b"".join(b"[rank %d] %s\n" % (self.rank, line) for line in (whole + newline).splitlines()))
        else:
            self._said = self._said[-_KEPT:]
        return bool(data)

    def tell(self) -> None:
        """What it said last, of a copy that failed silently."""
        if self._said:
            _print(b"".join(b"[rank %d] %s\n" % (self.rank, line) for line in self._said.splitlines()))


def _print(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def main(arguments: List[str]) -> int:
    count, is_tagged, command = int(arguments[0]), arguments[1] == "tag", arguments[2:]
    port = free_port()
    copies: List[Copy] = []
    for rank in range(count):
        is_read = is_tagged or rank > 0
        try:
            process = subprocess.Popen(
                command,
                env=environment_of(rank, count, port),
                stdout=subprocess.PIPE if is_read else None,
                stderr=subprocess.STDOUT if is_read else None,
                bufsize=0,
            )
        except OSError as error:
            _end([each.process for each in copies])
            sys.stderr.write("`%s` cannot be started: %s\n" % (command[0], error.strerror))
            return 127 if isinstance(error, FileNotFoundError) else 126
        copies.append(Copy(rank, process, is_tagged))
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: _forward(copies, received))
    return _attend(copies)


def _forward(copies: List[Copy], number: int) -> None:
    for each in copies:
        if each.process.poll() is None:
            each.process.send_signal(number)


def _attend(copies: List[Copy]) -> int:
    """Until all have ended, or one has failed. Returns the exit code."""
    woken = _woken_by_ends()
    with selectors.DefaultSelector() as selector:
        selector.register(woken, selectors.EVENT_READ)
        for each in copies:
            if each.pipe is not None:
                selector.register(each.pipe, selectors.EVENT_READ, each)
        while True:
            failed = next((each for each in copies if each.process.poll()), None)
            if failed is not None:
                _end([each.process for each in copies])
            if failed is not None or all(each.process.poll() == 0 for each in copies):
                while _hear(selector, 0.0):
                    pass
                if failed is not None:
                    failed.tell()
                return 0 if failed is None else _code(failed.process.returncode)
            _hear(selector, None)
            _emptied(woken)


def _woken_by_ends() -> int:
    """A pipe that has something to read when a copy has ended."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.write(writer, b"x")  # one may have ended before this
    return reader


def _emptied(pipe: int) -> None:
    try:
        os.read(pipe, 4096)
    except BlockingIOError:
        pass


def _hear(selector: "selectors.BaseSelector", seconds: Optional[float]) -> bool:
    """What they print now, or next. Whether there was anything."""
    found = False
    for key, _ in selector.select(seconds):
        if key.data is not None:
            found = True
            if not key.data.hear():
                selector.unregister(key.fileobj)
    return found


def _end(processes: "List[subprocess.Popen[bytes]]") -> None:
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
        for each in processes:
            if each.poll() is None:
                each.send_signal(number)
        deadline: Optional[float] = None if seconds is None else time.monotonic() + seconds
        for each in processes:
            try:
                each.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                break


def _code(returned: int) -> int:
    """As a shell says of a process that a signal ended."""
    return returned if returned >= 0 else 128 - returned


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
