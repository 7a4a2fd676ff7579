"""The account that the far side runs as: its name and its own folder."""

import os
import pwd


def account_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def account_home() -> str:
    """Where sshd looks, which is the account's own and not what HOME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")
