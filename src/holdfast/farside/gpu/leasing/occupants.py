"""Who a process on a GPU is, as far as this machine lets see."""

import os
import pwd
from typing import NamedTuple, Optional

_MOST = 60
MPS_SERVER = "nvidia-cuda-mps"
"""How the name of the process begins by which several share a device. It computes nothing of its own."""


class Occupant(NamedTuple):
    """Empty, or None, where it is not to be seen: another container's, or another user's where those are hidden."""

    pid: int
    uid: Optional[int]
    user: str
    name: str
    command: str

    @property
    def text(self) -> str:
        """`process 4242 (alice, python train.py)`."""
        known = ", ".join(each for each in (self.user, self.command or self.name) if each)
        return "process %d (%s)" % (self.pid, known or "which cannot be seen from here")


def occupant(pid: int) -> Occupant:
    status = dict(line.split(":", 1) for line in _read(pid, "status").split("\n") if ":" in line)
    uids = status.get("Uid", "").split()
    uid = int(uids[0]) if uids else None
    words = [each for each in _read(pid, "cmdline").split("\0") if each]
    if words:
        words[0] = os.path.basename(words[0]) or words[0]
    command = _printable(" ".join(words))
    shown = command if len(command) <= _MOST else command[: _MOST - 1] + "…"
    return Occupant(pid, uid, "" if uid is None else user_name(uid), _printable(status.get("Name", "").strip()), shown)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def variable(pid: int, name: str) -> str:
    """Of the environment that it was started with; empty for another user's process."""
    prefix = name + "="
    found = [each for each in _read(pid, "environ").split("\0") if each.startswith(prefix)]
    return found[0][len(prefix) :] if found else ""


def parent(pid: int) -> int:
    text = _read(pid, "stat")
    return int(text.rpartition(")")[2].split()[1]) if ")" in text else 0


def _read(pid: int, name: str) -> str:
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as source:
            return source.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def _printable(text: str) -> str:
    """Another user's words go to a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)
