"""A port of a run's machine on this one (TensorBoard, a debugger), for as long as the command lives."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Generator, Iterator

from holdfast.errors import HoldfastError, HostError, UsageError
from holdfast.hosts.complaints import Complaints
from holdfast.hosts.connection import Carrier
from holdfast.hosts.far_end import Said
from holdfast.project.folder import Project
from holdfast.workbench.following.session import session_of
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.link import Patience

_LOOK = 0.1
REFUSED = "open failed: connect failed"


def forward(project: Project, run: str, port: int, near_port: int | None, context: Context) -> Iterator[events.Event]:
    """Yields `PortOpened` when the port is open here; then only what goes wrong, until it is interrupted. A link that
    breaks is taken up again."""
    session = session_of(project, run, context)
    host = session.host
    carrier = host.carrier(port)
    if carrier is None:
        yield events.PortOpened(port, port, host.name)
        return
    opening = events.PortOpened(port, _near_port(port, near_port), host.name)
    patience, openings = Patience(None), 0
    while True:
        tunnel = _Tunnel(carrier, opening)
        try:
            openings += yield from tunnel.watch()
        finally:
            tunnel.end()
        error = tunnel.why()
        if not openings or not isinstance(error, HostError):
            raise error
        pause = patience.pause(error, openings)
        yield events.ConnectionLost(session.run_id, error.message, pause)
        time.sleep(pause)


class _Tunnel:
    """One process that carries the port. It asks at the terminal itself."""

    def __init__(self, carrier: Carrier, opening: events.PortOpened) -> None:
        self._carrier, self._opening = carrier, opening
        self._process = subprocess.Popen(
            carrier.argv(opening.near_port),
            env=dict(carrier.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._complaints = Complaints(self._process.stderr, REFUSED.encode())

    def watch(self) -> Generator[events.Event, None, bool]:
        """Until it ends; returns whether the port was open in between."""
        is_open = told = False
        while self._process.poll() is None:
            if not is_open and not _is_free(self._opening.near_port):
                is_open = True
                yield self._opening
            pause = 1.0 if is_open else _LOOK
            if told:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(pause)
            elif self._complaints.heard.wait(pause):
                told = True
                yield events.Warned(
                    f"Nothing listens on port {self._opening.port} of {self._opening.host} yet.",
                    "Start it in the run, for example: tensorboard --host 127.0.0.1",
                )
        return is_open

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._complaints.join(1.0)

    def why(self) -> HoldfastError:
        return self._carrier.explain(Said(self._process.returncode, self._complaints.text(), ""))


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
