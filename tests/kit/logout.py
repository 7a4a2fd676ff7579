"""A listener that starts one sshd per connection and, when that ends, ends everything started in it.

This is what `KillUserProcesses=yes` of systemd-logind does: a process is found however it detached itself, because the
process here that waits for sshd adopts every orphan below it. One that has `HOLDFAST_TEST_SPARED=1` in its environment
lives on, as a lingering user unit would.

Run as `python logout.py PORT PROGRAM …`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from kit import processes

SPARED = "HOLDFAST_TEST_SPARED=1"
_PR_SET_CHILD_SUBREAPER = 36


def serve(port: int, program: list[str]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.create_server(("127.0.0.1", port)) as listener:
        print(f"Server listening on 127.0.0.1 port {port}.", file=sys.stderr, flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _attend(connection, program)


def _attend(connection: socket.socket, program: list[str]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    sshd = os.fork()
    if sshd == 0:
        os.dup2(connection.fileno(), 0)
        os.dup2(connection.fileno(), 1)
        os.execv(program[0], program)
    connection.close()
    while os.wait()[0] != sshd:
        pass
    _end_all()
    os._exit(0)


def _end_all() -> None:
    """Kill the remaining descendants; the system's first process adopts the spared ones when we exit."""
    while True:
        left = [one for one in processes.below(os.getpid()) if SPARED not in one.environment]
        if not left:
            return
        processes.send(left, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
