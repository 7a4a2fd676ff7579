"""Runs many `holdfast` commands quickly: a process that has loaded Holdfast forks for each of them.

A command is a process of its own, with its own environment, folder and streams, as if it had been started by a shell;
only Python's start and the imports are saved, which are most of a short command's time. Where the start itself is the
point (`LC_ALL`, `PYTHONPATH`, another interpreter), `must_start` says so and a real one is started.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_STREAMS = 3
_PACKAGES = ("cli", "workbench", "hosts", "history", "project", "snapshots", "environments", "containers")
_LIBRARIES = ("click.shell_completion", "jmespath", "rich.console", "rich.progress", "rich.table", "yaml", "sqlite3")
_OF_THE_START = ("PYTHON", "LC_", "LANG", "LD_")


@dataclass(frozen=True)
class Result:
    """How one command line ended."""

    code: int
    out: str
    err: str


def must_start(variables: Mapping[str, str]) -> bool:
    """Whether an interpreter reads one of these only when it starts."""
    return any(name.startswith(_OF_THE_START) for name in variables)


def search_path() -> str:
    """PATH with a real Python first: a version manager's is a shell script that takes 0.2 s, and a run starts it."""
    return f"{Path(sys.base_prefix, 'bin')}:{os.environ['PATH']}"


class CommandServer:
    """Runs commands until `close`. Several threads may use one."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hfc-")
        self._address = os.path.join(self._folder.name, "s")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._address)
        listener.listen(64)
        argv = [sys.executable, "-c", "from kit.commands import serve; serve()", str(listener.fileno())]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
        with listener:
            self._process = subprocess.Popen(
                argv, env=environment, stdin=subprocess.PIPE, pass_fds=[listener.fileno()], cwd="/"
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()

    def run(self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout: float) -> Result:
        """Raises subprocess.TimeoutExpired, and ends the command then."""
        deadline = time.monotonic() + timeout
        readers, writers = zip(os.pipe(), os.pipe(), strict=True)
        with socket.socket(socket.AF_UNIX) as connection, open(os.devnull, "rb") as nothing:
            connection.connect(self._address)
            request = json.dumps([list(arguments), str(cwd), dict(environment), _umask()]).encode()
            socket.send_fds(connection, [struct.pack(">I", len(request))], [nothing.fileno(), *writers])
            for writer in writers:
                os.close(writer)
            connection.sendall(request)
            pid = struct.unpack(">i", _take(connection, 4))[0]
            texts = _read_all(readers, deadline)
            code = _code(connection, deadline)
        if texts is None or code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["holdfast", *arguments], timeout)
        out, err = (text.decode(errors="surrogateescape").replace("\r\n", "\n") for text in texts)
        return Result(code, out, err)


def _umask() -> int:
    """Read without changing it, even for a moment: other threads may be making files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))


def _read_all(readers: Sequence[int], deadline: float) -> list[bytes] | None:
    """What comes until both are closed; None when that is not in time."""
    texts = {reader: bytearray() for reader in readers}
    left = set(readers)
    try:
        while left:
            ready, _, _ = select.select(list(left), [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            for reader in ready:
                data = os.read(reader, 1 << 16)
                texts[reader] += data
                if not data:
                    left.discard(reader)
        return [bytes(texts[reader]) for reader in readers]
    finally:
        for reader in readers:
            os.close(reader)


def _code(connection: socket.socket, deadline: float) -> int | None:
    connection.settimeout(max(0.1, deadline - time.monotonic()))
    try:
        return int(struct.unpack(">i", _take(connection, 4))[0])
    except TimeoutError:
        return None


def _take(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("the command server is gone")
        data += more
    return data


# ---- the server's own process ----


def serve() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    _load()
    gc.collect()
    gc.freeze()
    waiting: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener.fileno(), woken, 0], [], [])
        if 0 in ready:
            os._exit(0)  # the parent is gone
        if woken in ready:
            os.read(woken, 1 << 12)
        if listener.fileno() in ready:
            connection, _ = listener.accept()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for descriptor in (woken, waking, listener.fileno(), *(each.fileno() for each in waiting.values())):
                    os.close(descriptor)
                _become(connection)
            with contextlib.suppress(OSError):  # the test was ended meanwhile
                connection.sendall(struct.pack(">i", pid))
            waiting[pid] = connection
        _report(waiting)


def _report(waiting: dict[int, socket.socket]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with contextlib.suppress(OSError), waiting.pop(pid) as connection:
                connection.sendall(struct.pack(">i", os.waitstatus_to_exitcode(status)))


def _become(connection: socket.socket) -> NoReturn:
    """Becomes the command."""
    head, descriptors, _, _ = socket.recv_fds(connection, 4, _STREAMS)
    arguments, cwd, environment, umask = json.loads(_take(connection, struct.unpack(">I", head)[0]))
    connection.close()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    os.umask(umask)
    sys.argv = ["holdfast", *arguments]
    sys.path[0] = cwd
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the streams of this process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    from holdfast.__main__ import run

    try:
        run()
    finally:
        os._exit(1)


def _load() -> None:
    import holdfast

    for name in _PACKAGES:
        folder = os.path.join(os.path.dirname(holdfast.__file__), name)
        for found in pkgutil.walk_packages([folder], f"holdfast.{name}."):
            importlib.import_module(found.name)
    for name in _LIBRARIES:
        importlib.import_module(name)


_SERVER: list[CommandServer] = []
_LOCK = threading.Lock()


def command_server() -> CommandServer:
    """The server of this process, started on first use."""
    with _LOCK:
        if not _SERVER or not _SERVER[-1].is_alive:
            _SERVER.append(CommandServer())
        return _SERVER[-1]
