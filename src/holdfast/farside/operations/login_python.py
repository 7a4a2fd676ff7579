"""The Python that a person gets who logs in here, and whether the one that a target names is there."""

import os
import pwd
import re
import sys
from typing import Any, Dict, List

from holdfast.farside.environments.user_python import find_python
from holdfast.farside.operations.account import account_home
from holdfast.farside.system.children import CannotStart, inherited_environment
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Program
from holdfast.farside.system.refusal import Refused

PATIENCE = 10.0
"""Seconds for each login shell that is asked: a start-up file may hang."""


def login_python(_home: Home) -> Dict[str, Any]:
    """The `python` that a person gets who logs in here, else the `python3`; empty where neither is a Python 3."""
    shell = os.environ.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    for flags in (["-i", "-c"], ["-c"]):  # many have their Python from a file that only interactive shells read
        found = chosen_python(_ask_shell(shell, flags))
        if found:
            return {"python": found, "shell": shell}
    return {"python": "", "shell": shell}


def chosen_python(said: str) -> str:
    """From what the login shell printed, whatever else its start-up files printed too."""
    for name in ("python", "python3"):
        for found, major, path in re.findall(r"holdfast-(\w+):(\d+):(/[^\r\n]*)", said):
            if found == name and int(major) >= 3:
                return str(path)
    return ""


def _ask_shell(shell: str, flags: List[str]) -> str:
    """What it prints in time; empty where it cannot be started."""
    # The mark is put together by the shell, so that one that echoes its commands does not print it. Words, quotes and
    # semicolons as every shell has them; Python 2 answers too.
    asked = "; ".join(
        '%s -c \'import sys; print("holdfast" + "-%s:" + str(sys.version_info[0]) + ":" + sys.executable)\''
        % (name, name)
        for name in ("python", "python3")
    )
    # Every shell takes a name that begins with a dash for a login; not every one takes `-l` together with `-c`.
    become = "import os, sys; os.chdir(sys.argv[1]); os.execv(sys.argv[2], sys.argv[3:])"
    home = account_home()
    argv = [sys.executable, "-I", "-S", "-c", become, home if os.path.isdir(home) else "/", shell]
    argv += ["-" + os.path.basename(shell)] + flags + [asked]
    try:
        return Program(argv, inherited_environment(), is_apart=True).answer(PATIENCE, None).output
    except CannotStart:
        return ""


def has_python(_home: Home, message: Dict[str, Any]) -> Dict[str, str]:
    """Whether a run with the `pythonLocation` of the message would find its interpreter; `why` not, if not. One that is
    meant from the run's files cannot be looked for before there are any. With `start` it is started too, and says its
    `version`: only for a Python that the user has named just now."""
    location = message["python"]
    path = os.path.expanduser(location)
    if os.sep in location and not os.path.isabs(path):
        return {"why": "", "version": ""}
    if os.path.isdir(path):
        return {"why": "`%s` is a folder; its Python may be `%s/bin/python`" % (path, path.rstrip("/")), "version": ""}
    try:
        found = find_python(location, os.path.expanduser("~"))
    except Refused as refusal:
        return {"why": refusal.message, "version": ""}
    return _started(found) if message.get("start") else {"why": "", "version": ""}


def _started(path: str) -> Dict[str, str]:
    argv = [path, "-I", "-c", "import sys; print('holdfast-%d.%d.%d' % sys.version_info[:3])"]
    try:
        answer = Program(argv, inherited_environment(), is_apart=True).answer(PATIENCE, None)
    except CannotStart as problem:
        return {"why": str(problem), "version": ""}
    found = re.search(r"^holdfast-(3\.\d+\.\d+)\r?$", answer.output, re.MULTILINE)
    if found is None:
        return {"why": "`%s` does not start as a Python 3" % path, "version": ""}
    return {"why": "", "version": found.group(1)}
