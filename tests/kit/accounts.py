"""Unix users that a test session makes for itself and removes, with the folder that their homes lie in."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit import processes
from kit.waiting import wait_for

_PREFIX = "hfk-"
_LOCK = ".lock"
_A_MINUTE = 60
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@contextlib.contextmanager
def premises() -> Iterator[Path]:
    """A folder that every user can enter (pytest's own is closed to others), removed at the end.

    Its maker holds a lock: what a killed session left behind is removed by the next one.
    """
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def is_left(folder: Path, lock: str) -> bool:
    """Whether the maker of a folder in `/tmp` is gone: nobody holds its lock, or none was made in the first minute."""
    try:
        with (folder / lock).open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        with contextlib.suppress(OSError):
            return time.time() - folder.stat().st_mtime > _A_MINUTE
        return False
    return True


def sweep() -> None:
    """Remove what sessions left that were killed before they could."""
    left = {folder for folder in Path("/tmp").glob(f"{_PREFIX}*") if is_left(folder, _LOCK)}
    for folder in left:
        processes.send(_listeners(folder), signal.SIGKILL)
    for entry in pwd.getpwall():
        parts = Path(entry.pw_dir).parts  # / tmp hfk-… … name
        if parts[:2] == ("/", "tmp") and len(parts) > 3 and parts[2].startswith(_PREFIX):
            folder = Path(*parts[:3])
            if folder in left or not folder.exists():
                processes.end_user(entry.pw_uid)
                _remove_user(entry.pw_name)
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Account:
    """One unix user with an empty home."""

    name: str
    uid: int
    home: Path
    password: str = ""

    @staticmethod
    def create(folder: Path, shell: str = "/bin/bash", password: str = "") -> Account:
        """Make a user whose home is below `folder`; without a password it can be entered by key only."""
        name = f"hf{secrets.token_hex(4)}"
        home = folder / name
        # `*` is no password at all; the default `!` is a locked account, which sshd refuses for keys as well.
        administer(["useradd", "-M", "-d", str(home), "-s", shell, "-p", "*", name])
        if password:
            administer(["chpasswd", "-c", "SHA256", "-s", "1000"], given=f"{name}:{password}\n")
        entry = pwd.getpwnam(name)
        home.mkdir(mode=0o755)
        os.chown(home, entry.pw_uid, entry.pw_gid)
        return Account(name, entry.pw_uid, home, password)

    def remove(self) -> None:
        """End the account's processes, then remove the user and the home."""
        processes.end_user(self.uid)
        _remove_user(self.name)
        shutil.rmtree(self.home, ignore_errors=True)

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        """A file of this user at a path relative to the home; missing folders are made."""
        path = self.home / name
        for folder in [*reversed(path.relative_to(self.home).parents)][1:]:
            with contextlib.suppress(FileExistsError):
                (self.home / folder).mkdir(mode=0o700)
                shutil.chown(self.home / folder, self.name, self.name)
        path.write_text(text)
        path.chmod(mode)
        shutil.chown(path, self.name, self.name)
        return path

    def authorize(self, public_key: str) -> None:
        """Append a line to `authorized_keys`."""
        path = self.home / ".ssh" / "authorized_keys"
        before = path.read_text() if path.exists() else ""
        self.write(".ssh/authorized_keys", f"{before}{public_key.strip()}\n", 0o600)

    def join(self, group: str) -> None:
        """Make the user a member of a group; sessions that are open now are not."""
        administer(["usermod", "-a", "-G", group, self.name])

    def processes(self) -> list[processes.Process]:
        """What this user runs now; sshd has one process per connection among them."""
        return processes.of_user(self.uid)

    def run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command as this user, without ssh, in the home."""
        return subprocess.run(
            argv,
            user=self.uid,
            group=pwd.getpwnam(self.name).pw_gid,
            extra_groups=[],
            cwd=self.home,
            env={"HOME": str(self.home), "USER": self.name, "PATH": "/usr/local/bin:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
        )


def administer(argv: Sequence[str], given: str = "", fine: int = 0) -> None:
    """Run a program that changes /etc/passwd, again while another process has the lock."""

    def done() -> bool:
        result = subprocess.run(argv, input=given, capture_output=True, text=True, env={"PATH": _SYSTEM_PATH})
        if result.returncode in (0, fine):
            return True
        # One is changed after the other, so that a name can be half there when a lock was refused in between.
        assert "lock" in result.stderr or "try again" in result.stderr, f"{argv}: {result.stderr}"
        return False

    wait_for(done, what=" ".join(argv))


def _listeners(folder: Path) -> list[processes.Process]:
    # sshd writes its title over its arguments, so that they are one word.
    started = re.compile(rf"sshd .*-f {re.escape(str(folder))}/")
    return [one for one in processes.every() if one.uid == 0 and started.search(" ".join(one.argv))]


def _remove_user(name: str) -> None:
    # -f: a root process of sshd may still be going down for this user.
    administer(["userdel", "-f", name], fine=6)
