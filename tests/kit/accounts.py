"""Unix users that a test session makes and removes, with the folder that has their homes."""

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kit import processes
from kit.waiting import wait_for

PREFIX = "hfk-"
LOCK = ".lock"
_NAME = re.compile(r"hf[0-9a-f]{8}")
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_PASSING = ("lock", "try again", "cannot remove entry")
"""What these programs say if another one is at work."""


@contextlib.contextmanager
def premises() -> Iterator[Path]:
    """A folder that every user can enter (pytest's own is closed to others), removed at the end.

    Its maker holds a lock: what a killed session left behind is removed by the next one.
    """
    sweep()
    folder, lock = locked_folder(PREFIX, LOCK)
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def locked_folder(prefix: str, lock: str) -> tuple[Path, IO[str]]:
    """A new folder in `/tmp` and the file in it that its maker holds locked. The folder gets its name only after that:
    a session that removes leftovers sees it locked or not at all."""
    new = Path(tempfile.mkdtemp(prefix="new-", dir="/tmp"))
    new.chmod(0o755)
    file = (new / lock).open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return new.rename(new.with_name(prefix + new.name[len("new-") :])), file


@contextlib.contextmanager
def left_behind(folder: Path, lock: str) -> Iterator[bool]:
    """Whether the maker of a folder is gone. Its lock is held meanwhile, so that no other session removes or uses it.

    Sessions look one at a time: a locked folder is in use, and not one that another session is about to remove.
    """
    shared = os.open("/tmp", os.O_RDONLY)
    try:
        fcntl.flock(shared, fcntl.LOCK_EX)
        try:
            with (folder / lock).open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield True
                return
        except (BlockingIOError, FileNotFoundError, PermissionError):
            pass
        yield False
    finally:
        os.close(shared)


def sweep() -> None:
    """Remove the leftovers of killed sessions."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        with left_behind(folder, LOCK) as is_left:
            if is_left:
                processes.send(_listeners(folder), signal.SIGKILL)
                _remove_users(lambda home, folder=folder: home.is_relative_to(folder))  # type: ignore[misc]
                shutil.rmtree(folder, ignore_errors=True)
    _remove_users(lambda home: home.parts[2].startswith(PREFIX) and not Path(*home.parts[:3]).exists())


def _remove_users(is_meant: Callable[[Path], bool]) -> None:
    """The kit's users whose home matches."""
    for entry in pwd.getpwall():
        home = Path(entry.pw_dir)
        if _NAME.fullmatch(entry.pw_name) and home.parts[:2] == ("/", "tmp") and len(home.parts) > 3 and is_meant(home):
            processes.end_user(entry.pw_uid)
            _remove_user(entry.pw_name)


@dataclass(frozen=True)
class Account:
    """One unix user with an empty home."""

    name: str
    uid: int
    home: Path
    password: str = ""

    @staticmethod
    def create(folder: Path, shell: str = "/bin/bash", password: str = "") -> Account:
        """Make a user whose home is below `folder`; without a password only a key can log in."""
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
        """This user's processes, including sshd's one per connection."""
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
        # The files change one after another, so a name can be half there if a lock was refused in between; and another
        # session may remove the same account at the same moment.
        assert any(words in result.stderr for words in _PASSING), f"{argv}: {result.stderr}"
        return False

    wait_for(done, what=" ".join(argv))


def _listeners(folder: Path) -> list[processes.Process]:
    # sshd writes its title over its arguments, so that they are one word.
    started = re.compile(rf"sshd .*-f {re.escape(str(folder))}/")
    return [one for one in processes.every() if one.uid == 0 and started.search(" ".join(one.argv))]


def _remove_user(name: str) -> None:
    # -f: a root process of sshd may still be going down for this user.
    administer(["userdel", "-f", name], fine=6)
