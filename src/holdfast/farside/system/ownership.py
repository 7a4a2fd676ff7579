"""Whose a file or folder is, and who else may write to it: that decides what is run from there and what is removed."""

import contextlib
import os
import stat
from typing import Iterator

from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.real_paths import real_path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_own(status: os.stat_result) -> bool:
    """Whether it belongs to this account. Where accounts have no numbers, everything does."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def is_only_ours(status: os.stat_result) -> bool:
    """Whether it belongs to this account and nobody else may write to it."""
    return is_own(status) and not status.st_mode & OTHERS_WRITE


def may_be_believed(status: os.stat_result) -> bool:
    """Whether it belongs to this account, or to the machine's administrator, as what `sudo` made: no other account can
    give it such an owner."""
    return is_own(status) or status.st_uid == 0


def is_private(status: os.stat_result) -> bool:
    """Of a folder: nobody else can enter it, so whatever the modes of what lies in it are, nobody gets there."""
    return is_own(status) and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def make_private(path: str) -> None:
    """The folder, and those above it that are missing, for this account alone whatever the umask is: `os.makedirs` has
    its mode for the last one only. There already is success."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(path)
        if above in ("", path):
            raise
        make_private(above)
        make_private(path)


@contextlib.contextmanager
def closed_to_others() -> Iterator[None]:
    """What this process, or one that it starts, makes in the block is not for others to write to, whatever the umask
    is. For a process with one thread."""
    mask = os.umask(0o022)
    os.umask(mask | 0o022)
    try:
        yield
    finally:
        os.umask(mask)


def open_above(path: str) -> str:
    """The folder above `path` in which others may put something else in its place; empty for none. What is below a
    folder that nobody else can enter is out of their reach. Which group writes to an administrator's folder is that
    one's word."""
    for place in {os.path.abspath(path), real_path(path)}:
        above = os.path.dirname(place)
        folders = [above]
        while os.path.dirname(above) != above:
            above = os.path.dirname(above)
            folders.insert(0, above)
        for folder in folders:
            status = os.stat(folder)
            is_replaced = status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
            if is_replaced and (is_own(status) or status.st_mode & stat.S_IWOTH):
                return folder
            if is_private(status):
                break
    return ""


def account_name(uid: int) -> str:
    """Empty for one that has no name."""
    import pwd  # only where something is wrong

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def give_back(path: str) -> str:
    """The command that gives `path`, with all that is in it, to this account: one `sudo` may have made it root's."""
    uid = os.geteuid()
    return "sudo chown -R %s %s" % (pasted(account_name(uid) or str(uid)), pasted(path))
