"""Who may log in to the account by key: lines of `authorized_keys` that are added and taken away, all others stay byte
for byte."""

import errno
import fcntl
import os
import re
import stat
from typing import Any, Dict

from holdfast.farside.operations.account import account_home
from holdfast.farside.system.files import whole
from holdfast.farside.system.layout import Home
from holdfast.farside.system.ownership import OTHERS_WRITE, make_private
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.refusal import Refused

KEY_STAYS = "key-stays"
"""The kind of refusal of a key that cannot be taken away."""
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{20,}={0,3}\Z")
_MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS)


def authorize(_home: Home, line: str) -> Dict[str, Any]:
    """Let the owner of the key of this line in. A repeat changes nothing. Names what sshd holds against the account:
    with its usual StrictModes it takes no key where others may write."""
    home = account_home()
    path = os.path.join(home, ".ssh", "authorized_keys")
    made = [each for each in (path, os.path.dirname(path)) if not os.path.lexists(each)]
    added = add_line(path, line)
    real = real_path(path)
    looked_at = [home, os.path.dirname(path), path] + ([os.path.dirname(real)] if os.path.islink(path) else [])
    open_to_others = [each for each in looked_at if os.stat(each).st_mode & OTHERS_WRITE]
    return {"file": path, "added": added, "made": len(made), "open_to_others": open_to_others}


def deauthorize(_home: Home, body: str, made: int) -> Dict[str, Any]:
    """Remove the lines with this key. Gone already is success; refused as KEY_STAYS where it cannot be done. `made`: as
    `authorize` said, to take back the file (1) and its folder (2) too, if nothing was put there since."""
    path = os.path.join(account_home(), ".ssh", "authorized_keys")
    removed = remove_lines(path, body)
    try:
        if made > 0 and os.path.getsize(path) == 0:
            os.unlink(path)
        if made > 1:
            os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # another's by now, or gone
    return {"file": path, "removed": removed}


def add_line(path: str, line: str) -> bool:
    """Append a line of `authorized_keys`, and keep all others byte for byte. False when its key is there already."""
    if not isinstance(line, str) or "\n" in line or "\r" in line or "\0" in line:
        raise Refused("refused", "A line of authorized_keys cannot hold a line break.")
    words = line.split()
    body = words[1] if len(words) > 1 else ""
    if not _KEY_BODY.match(body):
        raise Refused("refused", "That is not the line of a public key.")
    folder = os.path.dirname(path)
    make_private(folder)
    with _Held(folder):
        before = _read(path)
        if any(_has_key(each, body) for each in before.split(b"\n")):
            return False
        newline = b"" if not before or before.endswith(b"\n") else b"\n"
        addition = newline + line.encode("utf-8") + b"\n"
        try:
            _replace(path, before + addition)
        except OSError as error:
            if error.errno not in _MAY_NOT:
                raise
            _append(path, addition)
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
            try:
                _replace(path, b"\n".join(kept))
            except OSError as error:
                if error.errno not in _MAY_NOT:
                    raise
                raise Refused(
                    KEY_STAYS,
                    "The key stays in `%s`: this account may not change that file's folder." % real_path(path),
                    "Take the line with %s… out of it by hand." % body[:40],
                )
    return len(lines) - len(kept)


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
    """Replaces the file whole, so that a full disk locks no user out; of a link, the file that it leads to."""
    real = real_path(path)
    with whole(real, 0o600, is_durable=True) as target:
        target.write(content)
        _take_after(real, target.fileno())


def _take_after(path: str, descriptor: int) -> None:
    """Mode and group of the file that is there; one that is new is for the account alone."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    try:
        os.fchown(descriptor, -1, status.st_gid)
    except OSError:
        pass  # a group that the account is not in
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _append(path: str, addition: bytes) -> None:
    """Appends in one piece, where the folder takes no new file; what is there is never touched."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        end = os.fstat(descriptor).st_size
        if os.write(descriptor, addition) < len(addition):
            os.ftruncate(descriptor, end)  # half a line would spoil the next one that is added
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
