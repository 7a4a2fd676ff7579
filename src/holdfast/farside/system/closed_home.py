"""Holdfast's folder on a machine is this account's alone: what runs comes from there, and what lies there is believed.

Others may enter the folder if its owner likes. Then they may write to nothing in it, nor to the folders inside those
from which programs run. If nobody else can enter it, only links out of it need a look.
"""

import os
import stat
from typing import Iterator, Tuple

from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.layout import BYTECODE, Home
from holdfast.farside.system.ownership import OTHERS_WRITE, give_back, is_own, is_private, may_be_believed, open_above
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.refusal import Refused

_LISTED = ("environments", "locks", "tools", "cache", "pythons", "runs")
"""Folders whose entries are looked at too: earlier versions made them as the umask was."""
_CHOOSE = "Choose another folder on that machine: holdfast computetarget attach … --home DIR"
_IF_NOT = "If not, choose another folder on that machine: holdfast computetarget attach … --home DIR"


class Exposed(Exception):
    """Something that another account made or may change. `command` of the owner closes it; empty where none does."""

    def __init__(self, message: str, command: str) -> None:
        Exception.__init__(self, message)
        self.message, self.command = message, command


def require_closed(home: Home) -> None:
    """Raises Refused, in the words for a client of this machine, where `look` finds something."""
    try:
        look(home)
    except Exposed as found:
        remedy = "If it is yours, on `%s`: %s\n%s" % (os.uname().nodename, found.command, _IF_NOT)
        raise Refused("refused", found.message, remedy if found.command else _CHOOSE) from None


def look(home: Home) -> None:
    """Raises Exposed where something of ours is another account's, or others may write to it or put something else in
    its place. What is not there is left to those who need it."""
    try:
        is_open = not is_private(os.stat(home.path))
        with os.scandir(home.path) as entries:
            ours = [entry for entry in entries if entry.name in home.NAMES or entry.name.startswith(home.CLIENTS)]
    except OSError:
        return  # not there yet; what needs it says so
    if ours:
        require_no_swap(home.path)
    for entry in ours:
        try:
            _look_at(entry, home.path, is_open)
        except OSError:
            continue  # gone, or a link that leads nowhere


def _look_at(entry: "os.DirEntry[str]", closing: str, is_open: bool) -> None:
    """`closing`: the folder that its owner closes to others, if they may write here."""
    status, place = entry.stat(follow_symlinks=False), entry.path
    _require_owner(status, entry.path, place)
    if entry.is_symlink():
        place = closing = real_path(place)
        status, is_open = os.stat(place), True
        _require_owner(status, entry.path, place)
        require_no_swap(place)
    _require_unwritten(status, place, closing, is_open)
    if entry.name in _LISTED and stat.S_ISDIR(status.st_mode):
        for inner, path in _inside(place, entry.name):
            if not may_be_believed(inner):
                _require_owner(inner, path, path)
            _require_unwritten(inner, path, closing, is_open and not is_private(status))


def _inside(folder: str, name: str) -> Iterator[Tuple[os.stat_result, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                yield entry.stat(follow_symlinks=False), entry.path
                if name == "environments":
                    path = os.path.join(entry.path, BYTECODE)  # as open as the others
                    yield os.lstat(path), path
            except OSError:
                continue  # removed meanwhile, or it has none


def _require_owner(status: os.stat_result, shown: str, owned: str) -> None:
    if not is_own(status):
        command = "" if os.geteuid() == 0 else give_back(owned)
        raise Exposed("Holdfast does not use `%s`: it belongs to another account." % shown, command)


def _require_unwritten(status: os.stat_result, place: str, closing: str, is_open: bool) -> None:
    if is_open and status.st_mode & OTHERS_WRITE and not stat.S_ISLNK(status.st_mode):
        message = "Holdfast does not use `%s`: others may write to it." % place
        raise Exposed(message, "chmod go-rwx %s" % pasted(closing))


def require_no_swap(place: str) -> None:
    """Raises Exposed where others may put something else in the place of that folder, which need not be there yet."""
    while not os.path.lexists(os.path.dirname(place)):
        place = os.path.dirname(place)
    above = open_above(place)
    if above:
        command = "chmod go-w %s" % pasted(above) if is_own(os.stat(above)) else ""
        raise Exposed("Others may write to `%s`, and so replace `%s`." % (above, place), command)
