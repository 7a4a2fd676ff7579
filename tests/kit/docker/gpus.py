"""Give simulated GPUs to containers that are started with `--gpus`: the near side of the hook."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from kit.docker.daemon import Daemon
from kit.docker.gpu_hook import INSIDE, VISIBLE
from kit.nvml import Simulated


@contextlib.contextmanager
def offered(daemon: Daemon, gpus: Simulated, below: Path | None = None) -> Iterator[None]:
    """Containers with `--gpus` have these; with `below`, only those that mount a folder at or below it. So tests that
    share a daemon have separate machines. Running containers see changes of the state."""
    folder = gpus.state.parent
    folder.chmod(0o777)  # the user of a container notes its calls there
    entry = daemon.gpus / f"{secrets.token_hex(8)}.json"
    text = {"below": str(below or ""), "state": str(folder), "library": str(gpus.library)}
    with _listening(folder / "occupy", gpus.state):
        new = entry.with_suffix(".new")
        new.write_text(json.dumps(text))
        new.replace(entry)
        try:
            yield
        finally:
            entry.unlink(missing_ok=True)


def occupying_inside(
    device: int = 0,
    memory: int = 256 << 20,
    utilization: int = 50,
    stays: bool = False,
    is_given: bool = True,
) -> str:
    """Python for the top of a script in a container: from there on its process is on the device, until it ends, under
    the number that it has on the host, as the real driver says it. `device` is its number in the container, unless it
    `is_given` none of it and reaches the machine's own, as a privileged one does. `stays` as with `occupying`."""
    return (
        "import os as _os, socket as _socket\n"
        f"_device = '{device}'\n"
        f"if {is_given} and _os.path.exists('/{VISIBLE}'):\n"
        f"    _device = open('/{VISIBLE}').read().split()[{device}]\n"
        "with _socket.socket(_socket.AF_UNIX) as _there:\n"
        f"    _there.connect('/{INSIDE}/occupy')\n"
        f"    _there.sendall(('%s {memory} {utilization} {int(not stays)}\\n' % _device).encode())\n"
        "    _there.recv(1)\n"
    )


@contextlib.contextmanager
def _listening(path: Path, state: Path) -> Iterator[None]:
    """A process in a container does not know its pid on the host; the other end of its socket does."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        _bind(server, path)
        server.listen()
        thread = threading.Thread(target=_answer, args=(server, state), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
    path.unlink(missing_ok=True)


def _bind(server: socket.socket, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        server.bind(f"/proc/self/fd/{folder}/{path.name}")  # a test's folder is often too long for a socket's address
    finally:
        os.close(folder)
    path.chmod(0o666)


def _answer(server: socket.socket, state: Path) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            pid, _, _ = struct.unpack("3i", credentials)
            name, memory, utilization, while_alive = connection.recv(200).decode().split()
            device, instance = _place(name, state.read_text())
            with Path(f"{state}.processes").open("a") as file:
                words = f"compute {memory} {utilization} {int(utilization) // 2} {instance} {while_alive}"
                file.write(f"device {device} process {pid} {words}\n")
            connection.sendall(b"\n")


def _place(name: str, state: str) -> tuple[int, int]:
    """Number of the device, and of the instance on it or -1, from a number or a UUID."""
    if name.isdigit():
        return int(name), -1
    found = re.search(rf"^device (\d+) (?:instance (\d+) )?uuid {re.escape(name)}$", state, re.MULTILINE)
    assert found is not None, name
    return int(found[1]), -1 if found[2] is None else int(found[2])
