"""What the system does to an account's processes at logout, and how this home starts those that shall live on."""

import glob
import os
import re
import signal
import time
from typing import Any, Dict, Iterable, List, Optional

from holdfast.farside.engines import direct
from holdfast.farside.engines.engine import Request
from holdfast.farside.operations.account import account_name
from holdfast.farside.system import kernel
from holdfast.farside.system.children import CannotStart, inherited_environment
from holdfast.farside.system.layout import Home, checked
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.programs import Program, collect
from holdfast.farside.system.refusal import Refused

PROOF_NAME = "hf-proof"
_SECONDS = 60
"""After so long it ends by itself, if no client comes back to look."""


def begin(home: Home, token: str) -> Dict[str, Any]:
    """Start a process exactly as a guardian is started; it holds a lock until it is looked for."""
    path = _path(home, token)
    home.make()
    make_private(os.path.dirname(path))
    answer = direct.start_detached(home, PROOF_NAME, become_proof, {"token": token})
    if answer != "ok":
        raise Refused(
            "cannot-start", "A process that outlives the connection cannot be started: %s" % (answer or "it died")
        )
    return {"begun": True}


def look(home: Home, token: str, patience: float) -> Dict[str, Any]:
    """Whether it still lives after `patience` seconds, as a logout may take a moment; ends it and leaves nothing. A
    repeat finds nothing alive."""
    path = _path(home, token)
    give_up = time.monotonic() + min(patience, _SECONDS / 2)
    holder = kernel.lock_holder(path, 0)
    while holder is not None and time.monotonic() < give_up:
        time.sleep(0.05)
        holder = kernel.lock_holder(path, 0)
    if holder:
        _end(path, holder)
    try:
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # another attach has its own in there
    return {"alive": holder is not None}


def become_proof(home: Home, request: Request, tell: int) -> None:
    """In a process of its own (`engine.Work`). Never returns."""
    # A guardian ignores SIGTERM and would outlive a logout by the minutes that pass until SIGKILL: this must not.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        path = _path(home, request["token"])
        direct.let_go(os.open(os.devnull, os.O_WRONLY), keep=tell)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kernel.set_name(PROOF_NAME)
        kernel.lock(descriptor, 0)
    except BaseException as error:  # noqa: BLE001 - the caller is told whatever it is
        direct.tell(tell, str(getattr(error, "strerror", None) or error))
        os._exit(1)
    direct.tell(tell, "ok")
    os.close(tell)
    time.sleep(_SECONDS)
    try:
        os.unlink(path)
    finally:
        os._exit(0)


def _path(home: Home, token: str) -> str:
    return os.path.join(home.path, "proofs", checked(token))


def _end(path: str, holder: int) -> None:
    try:
        os.kill(holder, signal.SIGKILL)
    except OSError:
        return
    give_up = time.monotonic() + 5
    while kernel.lock_holder(path, 0) is not None and time.monotonic() < give_up:
        time.sleep(0.005)


PATIENCE = 10.0
"""Seconds for `loginctl` to answer."""
_LOGIND = ("/usr/lib/systemd/", "/usr/local/lib/systemd/", "/run/systemd/", "/etc/systemd/")


def after_logout(home: Home) -> Dict[str, Any]:
    """What the system does to this account's processes when it logs out: `ends` as logind is configured (it may take
    it a while to do so), `lingers` (None: not known), `unit`: whether it lingers and its service manager starts
    a process, `said`: its words if not, `start`: how this home starts processes."""
    user = account_name()
    stays = lingers(user)
    works, said = direct.user_unit_works() if stays else (False, "")
    return {
        "user": user,
        "ends": ends_at_logout(_logind_texts(), user),
        "lingers": stays,
        "unit": works,
        "said": said,
        "start": direct.start_setting(home),
    }


def start_by(home: Home, how: str) -> Dict[str, Any]:
    """From now on runs of this home start so: `user-unit`, or empty for a fork."""
    if how not in ("", direct.USER_UNIT):
        raise Refused("refused", "This far side cannot start runs by `%s`." % how)
    direct.set_start(home, how)
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
    """Whether the account's service manager runs without a login; None if it is not known."""
    found = re.search(r"^Linger=(yes|no)\s*$", _loginctl(["show-user", user, "--property=Linger"]), re.MULTILINE)
    if found:
        return found.group(1) == "yes"
    return True if os.path.exists("/var/lib/systemd/linger/" + user) else None


def _loginctl(words: List[str]) -> str:
    """Its output; empty if it cannot be started."""
    try:
        asked = Program(["loginctl"] + words, inherited_environment())
    except CannotStart:
        return ""
    collect([asked], PATIENCE)
    return asked.text()
