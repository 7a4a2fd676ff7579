"""What the system does to an account's processes at logout, and how this home starts those that shall live on."""

import glob
import os
import re
from typing import Any, Dict, Iterable, List, Optional

from holdfast.farside.account.account import account_name
from holdfast.farside.layout import Home
from holdfast.farside.machine.programs import Program, collect
from holdfast.farside.refusal import Refused
from holdfast.farside.run import detaching
from holdfast.farside.run.children import CannotStart, inherited_environment

PATIENCE = 10.0
"""Seconds for `loginctl` to answer."""
_LOGIND = ("/usr/lib/systemd/", "/usr/local/lib/systemd/", "/run/systemd/", "/etc/systemd/")


def after_logout(home: Home) -> Dict[str, Any]:
    """What the system does to this account's processes when it logs out: `ends` as logind is configured (it may take
    it a while to do so), `lingers` (None: nobody could say), `unit`: whether it lingers and its service manager starts
    a process, `said`: its words if not, `start`: how this home starts processes."""
    user = account_name()
    stays = lingers(user)
    works, said = detaching.user_unit_works() if stays else (False, "")
    return {
        "user": user,
        "ends": ends_at_logout(_logind_texts(), user),
        "lingers": stays,
        "unit": works,
        "said": said,
        "start": detaching.start_setting(home),
    }


def start_by(home: Home, how: str) -> Dict[str, Any]:
    """From now on runs of this home start so: `user-unit`, or empty for a fork."""
    if how not in ("", detaching.USER_UNIT):
        raise Refused("refused", "This far side cannot start runs by `%s`." % how)
    detaching.set_start(home, how)
    return {"start": how}


def ends_at_logout(texts: Iterable[str], user: str) -> bool:
    """What logind's configuration files, in their order, say about the processes of `user`."""
    ends = False
    only: List[str] = []
    spared = ["root"]
    for text in texts:
        for name, value in re.findall(r"^\s*(Kill\w+)\s*=\s*(.*?)\s*$", text, re.MULTILINE):
            if name == "KillUserProcesses":
                ends = value.lower() in ("yes", "true", "on", "1", "y", "t")
            elif name == "KillOnlyUsers":
                only = value.split()
            elif name == "KillExcludeUsers":
                spared = value.split()
    return ends and user not in spared and (not only or user in only)


def _logind_texts() -> List[str]:
    """Later ones win: /etc over /run over /usr, and a folder's files, by name wherever they are, over the plain one."""
    plain = [folder + "logind.conf" for folder in _LOGIND]
    pieces = {}
    for folder in _LOGIND:
        for path in glob.glob(folder + "logind.conf.d/*.conf"):
            pieces[os.path.basename(path)] = path
    found = []
    for path in plain + [pieces[name] for name in sorted(pieces)]:
        try:
            with open(path, errors="replace") as source:
                found.append(source.read())
        except OSError:
            continue
    return found


def lingers(user: str) -> Optional[bool]:
    """Whether the account's service manager runs without a login; None where nobody could say."""
    found = re.search(r"^Linger=(yes|no)\s*$", _loginctl(["show-user", user, "--property=Linger"]), re.MULTILINE)
    if found:
        return found.group(1) == "yes"
    return True if os.path.exists("/var/lib/systemd/linger/" + user) else None


def _loginctl(words: List[str]) -> str:
    """What it says; empty where it is not to be had."""
    try:
        asked = Program(["loginctl"] + words, inherited_environment())
    except CannotStart:
        return ""
    collect([asked], PATIENCE)
    return asked.text()
