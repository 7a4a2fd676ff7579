"""Who is on the GPUs of this machine, as far as it lets see."""

import os
import pwd
import re
from typing import Iterable, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu.devices import NAMED, OK, GpuDevice, devices
from holdfast.farside.machine import driver_states, gpus

_MOST = 60
MPS_SERVER = "nvidia-cuda-mps"
"""How the name of the process begins by which several share a device. It computes nothing of its own."""
_INTERPRETER = re.compile(r"(?:python|pypy|perl|ruby|julia|node|Rscript|lua|bash|sh)[\d.]*\Z")
_FLAGS = re.compile(r"-[bBdEiIOPqRsSuvx]+\Z")
"""Python's options without a value, alone or together."""
_FIRST_NAMESPACE = "pid:[4026531836]"
"""The kernel always gives the machine's own namespace of processes this number."""


class Occupant(NamedTuple):
    """Empty, or None, where it is not to be seen: another container's, or another user's where those are hidden.
    `command` is the program and its script: options are private, and may be secrets."""

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


def strangers(pids: Iterable[int]) -> Tuple[Occupant, ...]:
    """Those that compute something of their own."""
    found = [occupant(each) for each in pids]
    return tuple(each for each in found if not each.name.startswith(MPS_SERVER))


def occupied(report: gpus.Report, is_amd_watched: bool = False) -> Tuple[GpuDevice, ...]:
    """The devices of the machine with the strangers on them. If no driver answers, those that can only be named;
    `is_amd_watched`: of these only AMD's, as devices that work."""
    found = [each for each in devices(report) if each.instance is None]
    if not found and report["state"] == driver_states.NO_DRIVER:
        found = [GpuDevice(number, pci, name, state=NAMED) for number, (pci, name) in enumerate(gpus.name_others())]
    if is_amd_watched:
        ours = [each for each in found if each.name.startswith("AMD ")]
        found = [each._replace(number=number, state=OK) for number, each in enumerate(ours)]
    return tuple(each._replace(strangers=tuple(one.pid for one in strangers(each.strangers))) for each in found)


def has_machine_pids() -> bool:
    """Whether processes have the numbers here that the driver gives them, and not those of a container."""
    try:
        return os.readlink("/proc/self/ns/pid") == _FIRST_NAMESPACE
    except OSError:
        return False


def occupant(pid: int) -> Occupant:
    status = dict(line.split(":", 1) for line in _read(pid, "status").split("\n") if ":" in line)
    uids = status.get("Uid", "").split()
    uid = int(uids[0]) if uids else None
    name = _printable(status.get("Name", "").strip())
    command = _printable(shown(_read(pid, "cmdline").split("\0"), name))
    cut = command if len(command) <= _MOST else command[: _MOST - 1] + "…"
    return Occupant(pid, uid, "" if uid is None else user_name(uid), name, cut)


def shown(words: Sequence[str], name: str) -> str:
    """Of a command line what others may read: `python train.py`. Only of an interpreter is the first word that is no
    option known to be a script, and only behind options that take no value. `name` is the kernel's for the process,
    for one that has written a line of its own in place of its words."""
    if not words or not words[0]:
        return ""
    program = os.path.basename(words[0]) or words[0]
    if len(words[0].split()) != 1:
        return (name.split() or [""])[0]
    if not _INTERPRETER.match(program):
        return program
    rest = list(words[1:])
    while rest and _FLAGS.match(rest[0]):
        rest.pop(0)
    if rest[:1] == ["-m"]:
        rest.pop(0)
    script = os.path.basename(rest[0]) if rest else ""
    return program if not script or script.startswith("-") or "=" in script else "%s %s" % (program, script)


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


def _read(pid: int, name: str) -> str:
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as source:
            return source.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def _printable(text: str) -> str:
    """Another user's words go to a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)
