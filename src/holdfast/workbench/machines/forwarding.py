"""A port of a run's machine on this one (TensorBoard, a debugger), for as long as the command lives."""

from __future__ import annotations

import queue
import socket
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import replace

from holdfast.errors import HoldfastError, HostKeyRefused, LoginNeeded, UsageError
from holdfast.hosts.complaints import Where, explain
from holdfast.hosts.connection import Said
from holdfast.hosts.ssh import Login, Ssh
from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.records.runs import follower_of
from holdfast.workbench.surroundings import Surroundings

PAUSES = (1.0, 2.0, 5.0, 10.0)
LOOK = 0.1
REFUSED = "open failed: connect failed"


def forward(
    project: Project, run: str, port: int, near_port: int | None, around: Surroundings
) -> Iterator[events.Event]:
    """Yields `PortOpened` when the port is open here; then only what goes wrong, until it is interrupted. A link that
    breaks is taken up again."""
    host = follower_of(project, run, around).product.host
    if not isinstance(host, Ssh):
        yield events.PortOpened(port, port, host.name)
        return
    here = _near_port(port, near_port)
    failures, was_open = 0, False
    while True:
        tunnel = _Tunnel(host, port, here)
        try:
            opened = yield from tunnel.watch()
        finally:
            tunnel.end()
        error = tunnel.why()
        was_open = was_open or opened
        if isinstance(error, (HostKeyRefused, LoginNeeded)) or not was_open:
            raise error
        failures = 0 if opened else failures + 1
        pause = PAUSES[min(failures, len(PAUSES) - 1)]
        yield events.ConnectionLost(error.message, pause)
        time.sleep(pause)


class _Tunnel:
    """One ssh that carries the port, on a connection of its own: a shared one would keep it open after the end. It
    asks at the terminal itself."""

    def __init__(self, host: Ssh, port: int, here: int) -> None:
        self._host, self._port, self._here = host, port, here
        alone = replace(host, login=Login(shares=False))
        options = ["-N", "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{here}:127.0.0.1:{port}"]
        self._process = subprocess.Popen(
            alone.argv([], options),
            env=alone.child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def watch(self) -> Generator[events.Event, None, bool]:
        """Until ssh ends; returns whether the port was open in between."""
        is_open = told = False
        while self._process.poll() is None:
            if not is_open and not _is_free(self._here):
                is_open = True
                yield events.PortOpened(self._port, self._here, self._host.name)
            try:
                line = self._lines.get(timeout=1.0 if is_open else LOOK)
            except queue.Empty:
                continue
            if REFUSED in line and not told:
                told = True
                yield events.Warned(
                    f"Nothing listens on port {self._port} of {self._host.name} yet.",
                    "Start it in the run, for example: tensorboard --host 127.0.0.1",
                )
        return is_open

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(1.0)

    def why(self) -> HoldfastError:
        where = Where(self._host.name, self._host.destination.by_hand())
        return explain(where, Said(self._process.returncode, "".join(self._said), ""))

    def _read(self) -> None:
        if self._process.stderr is not None:
            with self._process.stderr as stream:
                for line in stream:
                    self._said = [*self._said[-39:], line]
                    self._lines.put(line)


def _near_port(port: int, wanted: int | None) -> int:
    """The same number here, if it is free; another where the user did not ask for one."""
    if _is_free(wanted or port):
        return wanted or port
    if wanted is not None:
        raise UsageError(f"Port {wanted} of this machine is in use.", "Leave out --local to get a free one.")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    """Asked by taking it, not by calling it: a debugger would mistake that for its client."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
