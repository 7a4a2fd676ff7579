"""Which machine this is. One name may lead to several (login nodes), several may share one home (a network home), and
one folder may take another's place: what is said of a run is true only where it was started."""

import os
from typing import Any, Dict, List, Sequence

from holdfast.farside.system import kernel
from holdfast.farside.system.digests import sha256
from holdfast.farside.system.layout import Home
from holdfast.farside.system.real_paths import real_path

SYSTEM = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_KEPT = "machine"
"""File in Holdfast's folder with a random id, where the system has none."""


def machine_id(home: Home) -> str:
    """The same until the machine is installed anew or gets another name; empty where nothing can be told. The system's
    own id is not to be shown around, so it is hashed; the name is in it because machines made from one image often have
    the same id. `HOLDFAST_MACHINE_ID` stands in for the system's in tests."""
    system = os.environ.get("HOLDFAST_MACHINE_ID") or _first_line(SYSTEM) or _kept(home)
    if not system:
        return ""
    words = "\0".join(("holdfast machine", system, os.uname().nodename))
    return sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def place(home: Home) -> List[str]:
    """The machine, and Holdfast's folder on it, whatever links lead there."""
    return [machine_id(home), real_path(home.path)]


def elsewhere(created: Dict[str, Any], home: Home) -> str:
    """The name of the machine that a run is on, by its `created` event, if that is not this one; empty if it is."""
    if created.get("boot") == kernel.boot_id():
        return ""
    machine, name = created.get("machine"), str(created.get("host", ""))
    is_other = machine != machine_id(home) if machine else name not in ("", os.uname().nodename)
    return (name or "another machine") if is_other else ""


def _first_line(paths: Sequence[str]) -> str:
    for path in paths:
        try:
            with open(path) as source:
                found = source.readline().strip()
        except (OSError, ValueError):
            continue
        if found and found != "uninitialized":
            return found
    return ""


def _kept(home: Home) -> str:
    path = os.path.join(home.path, _KEPT)
    found = _first_line((path,))
    if found:
        return found
    new = "%s.new-%s" % (path, os.urandom(8).hex())
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as target:
            target.write(os.urandom(16).hex() + "\n")
        try:
            os.link(new, path)  # the first one wins: all others read it
        except FileExistsError:
            pass
        finally:
            os.unlink(new)
    except OSError:
        return ""
    return _first_line((path,))
