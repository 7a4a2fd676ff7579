"""A network bridge for each daemon: two daemons that share a bridge remove it from each other."""

from __future__ import annotations

import json
import socket
import subprocess

_PREFIX = "hfd"
_MOST = 200


def create() -> str:
    """Make an unused bridge with an address, and return its name."""
    for number in range(_MOST):
        name = f"{_PREFIX}{number}"
        if _ip("link", "add", name, "type", "bridge").returncode:
            continue  # taken
        for words in (("address", "add", f"10.213.{number}.1/24", "dev", name), ("link", "set", name, "up")):
            done = _ip(*words)
            assert done.returncode == 0, done.stderr
        return name
    raise AssertionError(_ip("link", "add", f"{_PREFIX}x", "type", "bridge").stderr or "no bridge is free")


def address(name: str) -> str:
    (link,) = json.loads(_ip("-j", "address", "show", "dev", name).stdout)
    return str(next(each["local"] for each in link["addr_info"] if each["family"] == "inet"))


def remove(name: str) -> None:
    """A second time does nothing."""
    _ip("link", "delete", name)


def number(name: str) -> int:
    """The kernel's number, which no later bridge of that name has."""
    return socket.if_nametoindex(name)


def exists(index: int) -> bool:
    """By its number."""
    return index in dict(socket.if_nameindex())


def _ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"})
