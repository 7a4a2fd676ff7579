"""Programs that builds on this host need and that were sent here: `tools/<name>-<architecture>-<libc>/<program>`."""

import contextlib
import os
import shutil
from typing import Any, Dict, List

from holdfast.farside.environments.platforms import build_name
from holdfast.farside.layout import Home, checked, object_path
from holdfast.farside.refusal import Refused


def require(home: Home, names: List[str]) -> None:
    """Refuse, so that they get sent, where one is not here."""
    missing = [name for name in names if not os.path.exists(path_of(home, name))]
    if missing:
        raise Refused("tools", "These programs are not here yet: %s." % ", ".join(missing))


def path_of(home: Home, name: str) -> str:
    """`uv-0.13.7` → its program `uv`, for this machine: several may share the folder."""
    program = checked(name).rsplit("-", 1)[0]
    return os.path.join(home.tools(), "%s-%s" % (name, build_name()), program)


def place(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """Make a program of an object that has arrived, whole or not at all. A repeat changes nothing."""
    path = path_of(home, message["name"])
    source = object_path(home.objects(), message["digest"])
    if not os.path.exists(source):
        raise Refused("incomplete", "The program `%s` has not arrived." % message["name"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = "%s.new-%s" % (path, os.urandom(8).hex())
    try:
        os.link(source, new)
    except OSError:  # no links here, or what is built is kept on another disk than what was sent
        shutil.copyfile(source, new)
    os.chmod(new, 0o500)
    os.rename(new, path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)  # still there if it was a second name of what is there already
    return {"path": path}


def platform(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """What they have to be for."""
    architecture, _, libc = build_name().rpartition("-")
    return {"architecture": architecture, "libc": libc}


OPERATIONS = {"tool": place, "platform": platform}
