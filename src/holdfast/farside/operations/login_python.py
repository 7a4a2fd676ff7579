"""The Python of a login here: the one that runs will use."""

import os
import pwd
import re
import select
import signal
import time
from typing import Any, Callable, Dict, List

from holdfast.farside.environments.installed import find_python
from holdfast.farside.operations.account import account_home
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused

PATIENCE = 10.0
"""Seconds for each login shell that is asked: a start-up file may hang."""
MOST_READ = 1 << 20


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
    # The mark is put together over there, so that a shell that echoes its commands does not print one. Words, quotes
    # and semicolons as every shell has them; Python 2 answers too.
    asked = "; ".join(
        '%s -c \'import sys; print("holdfast" + "-%s:" + str(sys.version_info[0]) + ":" + sys.executable)\''
        % (name, name)
        for name in ("python", "python3")
    )
    # Every shell takes a name that begins with a dash for a login; not every one takes `-l` together with `-c`.
    return _run(["-" + os.path.basename(shell)] + flags + [asked], shell)


def _run(argv: List[str], program: str) -> str:
    """What a program prints in time; empty when it cannot be started. It has no input and a session of its own, so that
    little of it stays when its time is over."""
    import subprocess

    home = account_home()
    try:
        process = subprocess.Popen(
            argv,
            executable=program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=home if os.path.isdir(home) else "/",
        )
    except OSError:
        return ""
    stream = process.stdout
    said = _read_while(stream.fileno(), lambda: process.poll() is None) if stream else b""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if stream:
        stream.close()
    return said.decode("utf-8", "replace")


def _read_while(descriptor: int, lives: Callable[[], bool]) -> bytes:
    """Until the end, or until the program is gone and said no more: something that it left behind may keep the pipe."""
    said, give_up = b"", time.monotonic() + PATIENCE
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while time.monotonic() < give_up and len(said) < MOST_READ:
        was_alive = lives()
        if poll.poll(50):
            data = os.read(descriptor, 65536)
            if not data:
                break
            said += data
        elif not was_alive:
            break
    return said


def has_python(_home: Home, location: str) -> Dict[str, Any]:
    """Whether a run with this `pythonLocation` would find its interpreter; `why` not, if not. One that is meant from
    the run's files cannot be looked for before there are any."""
    if os.sep in location and not os.path.isabs(os.path.expanduser(location)):
        return {"why": ""}
    try:
        find_python(location, os.path.expanduser("~"))
    except Refused as refusal:
        return {"why": refusal.message}
    return {"why": ""}
