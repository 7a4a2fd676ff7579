"""Key pairs of Holdfast's own: one per project and account, made by `ssh-keygen`, without a passphrase, readable by
this user alone."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import HostError, StorageError
from holdfast.farside.system.ownership import is_only_ours, make_private
from holdfast.frozen import dataclass
from holdfast.installed_programs import find_program

FOLDER = "keys"


@dataclass(frozen=True)
class Key:
    """`line` is the public half as a line of `authorized_keys`."""

    path: Path
    line: str

    @property
    def body(self) -> str:
        """What tells it from all other keys, whatever is written around it."""
        return self.line.split()[1]


def key_path(home: Path, target: str, project_id: str, account: str) -> Path:
    """Always the same for a project and an account (`me@gpu1:2222`), so that a second `attach` finds the key of the
    first."""
    digest = hashlib.sha256(f"{project_id}\0{account}".encode()).hexdigest()[:8]
    return home / FOLDER / f"{target}-{digest}"


def own_keys(home: Path, target: str) -> list[Path]:
    """Keys that were made for a target of this name, whatever the project and the account."""
    found = (home / FOLDER).glob(f"{glob.escape(target)}-*")
    return sorted(path for path in found if re.fullmatch(r"[0-9a-f]{8}", path.name[len(target) + 1 :]))


def is_ours(path: Path, home: Path) -> bool:
    """Whether Holdfast made the key at `path`."""
    return path.parent == home / FOLDER


def ensure_key(path: Path, comment: str, environment: Mapping[str, str]) -> Key:
    """The key at `path`, made if it is not there. `environment` is for `ssh-keygen`."""
    try:
        make_private(os.fspath(path.parent))
        if not path.exists():
            _make(path, comment, environment)
        path.chmod(0o600)
        return Key(path, _public_line(path, environment))
    except OSError as error:
        raise StorageError(
            f"The key `{path}` cannot be written: {error.strerror}.",
            "Check the permissions and the space of Holdfast's folder (HOLDFAST_HOME, else ~/.holdfast).",
        ) from error


def read_key(path: Path, environment: Mapping[str, str]) -> Key | None:
    """The key at `path`; None when it is not there or cannot be read."""
    try:
        return Key(path, _public_line(path, environment)) if path.exists() else None
    except (OSError, HostError):
        return None


def remove_key(path: Path) -> None:
    """Both halves. Gone already is success."""
    for half in (path, _public_path(path)):
        with contextlib.suppress(FileNotFoundError):
            half.unlink()


def _public_path(path: Path) -> Path:
    return path.with_name(path.name + ".pub")


def _make(path: Path, comment: str, environment: Mapping[str, str]) -> None:
    """Whole or not at all: made beside, then renamed, the public half first."""
    beside = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
    try:
        _run(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", os.fspath(beside)], environment)
        os.replace(_public_path(beside), _public_path(path))
        os.replace(beside, path)
    finally:
        remove_key(beside)


def _public_line(path: Path, environment: Mapping[str, str]) -> str:
    """From the public half, which anybody who could write there may have replaced: then from the private one."""
    with contextlib.suppress(FileNotFoundError):
        status = _public_path(path).lstat()
        is_ours = stat.S_ISREG(status.st_mode) and (is_only_ours(status) or not hasattr(os, "geteuid"))
        line = "" if not is_ours else _public_path(path).read_text(encoding="utf-8").strip()
        if len(line.split()) > 1 and "\n" not in line:
            return line
    return _run(["-y", "-P", "", "-f", os.fspath(path)], environment)


def _run(words: list[str], environment: Mapping[str, str]) -> str:
    program = find_program("ssh-keygen", environment)
    if program is None:
        raise HostError("`ssh-keygen` is not installed.", "Install the OpenSSH client.")
    try:
        done = subprocess.run(
            [program, *words],
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HostError("`ssh-keygen` did not come to an end.", "Try again.") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise HostError(f"`ssh-keygen` failed: {said[-1] if said else done.returncode}", "Remove the file it names.")
    return done.stdout.strip()
