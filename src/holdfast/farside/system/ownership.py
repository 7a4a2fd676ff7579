"""Whose a file or folder is, and who else may write to it: that decides what is run from there and what is removed."""

import os
import stat

from holdfast.farside.system.harmless import pasted

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_own(status: os.stat_result) -> bool:
    """Whether it belongs to this account. Where accounts have no numbers, everything does."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def is_only_ours(status: os.stat_result) -> bool:
    """Whether it belongs to this account and nobody else may write to it."""
    return is_own(status) and not status.st_mode & OTHERS_WRITE


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
