"""The account that Holdfast was let into: its `authorized_keys`, its own Python, and whether its processes live on
after a logout."""

import fcntl
import glob
import os
import pwd
import re
import select
import signal
import stat
import time
from typing import Any, Callable, Dict, Iterable, List, Optional

from holdfast.farside import detaching
from holdfast.farside.layout import Home
from holdfast.farside.refusal import Refused

PATIENCE = 10.0
"""Seconds for each program that is asked something: a start-up file may hang."""
MOST_READ = 1 << 20
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{20,}={0,3}\Z")
_LOGIND = ("/usr/lib/systemd/", "/usr/local/lib/systemd/", "/run/systemd/", "/etc/systemd/")


def authorize(line: str) -> Dict[str, Any]:
    """Let whoever has the key of this line in. A repeat changes nothing. Names what sshd holds against the account:
    with its usual StrictModes it takes no key where others may write."""
    home = _home()
    path = os.path.join(home, ".ssh", "authorized_keys")
    added = add_line(path, line)
    return {"file": path, "added": added, "open_to_others": _open_to_others([home, os.path.dirname(path), path])}


def deauthorize(body: str) -> Dict[str, Any]:
    """Remove the lines with this key. Gone already is success."""
    path = os.path.join(_home(), ".ssh", "authorized_keys")
    return {"file": path, "removed": remove_lines(path, body)}


def after_logout(home: Home) -> Dict[str, Any]:
    """What the system does to this account's processes when it logs out: `ends` as logind is configured (it may take
    it a while to do so), `lingers` (None: nobody could say), `unit`: whether it lingers and its service manager starts
    a process, `said`: its words if not, `start`: how this home starts processes."""
    user = _user()
    lingers = _lingers(user)
    works, said = detaching.user_unit_works() if lingers else (False, "")
    return {
        "user": user,
        "ends": ends_at_logout(_logind_texts(), user),
        "lingers": lingers,
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


def login_python() -> Dict[str, Any]:
    """The `python` that a person gets who logs in here, else the `python3`; empty where neither is a Python 3."""
    shell = os.environ.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    for flags in (["-i", "-c"], ["-c"]):  # many have their Python from a file that only interactive shells read
        found = chosen_python(_ask_shell(shell, flags))
        if found:
            return {"python": found, "shell": shell}
    return {"python": "", "shell": shell}


def add_line(path: str, line: str) -> bool:
    """Append a line of `authorized_keys`, and keep all others byte for byte. False when its key is there already."""
    if not isinstance(line, str) or "\n" in line or "\r" in line or "\0" in line:
        raise Refused("refused", "A line of authorized_keys cannot hold a line break.")
    words = line.split()
    body = words[1] if len(words) > 1 else ""
    if not _KEY_BODY.match(body):
        raise Refused("refused", "That is not the line of a public key.")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700)
    with _Held(folder):
        before = _read(path)
        if any(_has_key(each, body) for each in before.split(b"\n")):
            return False
        newline = b"" if not before or before.endswith(b"\n") else b"\n"
        _replace(path, before + newline + line.encode("utf-8") + b"\n")
    return True


def remove_lines(path: str, body: str) -> int:
    """Remove the lines that have this key, whatever stands around it; all others stay byte for byte."""
    if not isinstance(body, str) or not _KEY_BODY.match(body):
        raise Refused("refused", "That is not the key of a public key's line.")
    if not os.path.isdir(os.path.dirname(path)):
        return 0
    with _Held(os.path.dirname(path)):
        lines = _read(path).split(b"\n")
        kept = [line for line in lines if not _has_key(line, body)]
        if len(kept) != len(lines):
            _replace(path, b"\n".join(kept))
    return len(lines) - len(kept)


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


def chosen_python(said: str) -> str:
    """From what the login shell printed, whatever else its start-up files printed too."""
    for name in ("python", "python3"):
        for found, major, path in re.findall(r"holdfast-(\w+):(\d+):(/[^\r\n]*)", said):
            if found == name and int(major) >= 3:
                return str(path)
    return ""


def _home() -> str:
    """Where sshd looks, which is the account's own and not what HOME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class _Held:
    """Holds the folder while its file is read and replaced, so that of two who add a line neither is lost."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read()
    except FileNotFoundError:
        return b""


def _has_key(line: bytes, body: str) -> bool:
    return not line.lstrip().startswith(b"#") and body.encode("ascii") in line.split()


def _replace(path: str, content: bytes) -> None:
    """Whole or nothing. A link, and a file in a folder that only others may change, are written in place: their owner
    wants them where they are."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = 0o600
    if os.path.islink(path) or not os.access(os.path.dirname(path), os.W_OK):
        _write(path, content, mode)
        return
    new = "%s.holdfast-%d" % (path, os.getpid())
    try:
        _write(new, content, mode)
        os.chmod(new, mode)
        os.rename(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise


def _write(path: str, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as target:
        target.write(content)
        target.flush()
        os.fsync(target.fileno())


def _open_to_others(paths: List[str]) -> List[str]:
    return [path for path in paths if os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH)]


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


def _lingers(user: str) -> Optional[bool]:
    said = _run(["loginctl", "show-user", user, "--property=Linger"])
    found = re.search(r"^Linger=(yes|no)$", said, re.MULTILINE)
    if found:
        return found.group(1) == "yes"
    return True if os.path.exists("/var/lib/systemd/linger/" + user) else None


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


def _run(argv: List[str], program: Optional[str] = None) -> str:
    """What a program prints in time; empty when it cannot be started. It has no input and a session of its own, so that
    little of it stays when its time is over."""
    import subprocess

    home = _home()
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
