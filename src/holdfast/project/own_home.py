"""Holdfast's folder on this machine: programs, keys and settings are taken from it, so it must be this account's own,
and nobody else may write to it. Over SSH `bootstrap.py` looks at the same."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.errors import HostError, StorageError
from holdfast.farside.system.closed_home import Exposed, look, require_no_swap
from holdfast.farside.system.layout import MARKER, Home
from holdfast.farside.system.ownership import OTHERS_WRITE, account_name, give_back, is_only_ours, is_own, make_private
from holdfast.shown_text import pasted

_CHOOSE = "export HOLDFAST_HOME=DIR"


def require_own(home: Path) -> None:
    """Raises HostError where the folder, or anything of Holdfast's in it, belongs to another account. Also where others
    may write to such a thing, or put another in its place. Raises StorageError if it cannot look. What is not there yet
    is made later, for this account alone."""
    if not hasattr(os, "geteuid"):
        return
    with _told(home):
        with contextlib.suppress(FileNotFoundError):
            _require_own((home, home / "farside"))
        look(Home(os.fspath(home)))


def require_own_folder(home: Path) -> None:
    """The same for the folder alone, before anything is believed from there; where it is not there yet, for those above
    it, before it is made."""
    if not hasattr(os, "geteuid"):
        return
    with _told(home):
        if os.path.lexists(home):
            _require_own((home,))
        else:
            require_no_swap(os.fspath(home))


def require_own_version(home: Path, digest: str) -> None:
    """The same for one version of the far side, after `require_own`: only its folder is looked at."""
    if not hasattr(os, "geteuid"):
        return
    with _told(home), contextlib.suppress(FileNotFoundError):
        version = home / "farside" / digest
        if not is_only_ours(os.stat(version)):
            _require_own((home, home / "farside", version))


def make_own(folder: Path) -> None:
    """A folder in Holdfast's, and those above it that are missing, for this account alone. There already is success."""
    make_private(os.fspath(folder))


@contextlib.contextmanager
def _told(home: Path) -> Iterator[None]:
    """What is found, in words for people."""
    try:
        yield
    except Exposed as found:
        remedy = _if_yours(found.command) if found.command else _without_command()
        raise HostError(found.message, remedy) from None
    except OSError as error:
        raise StorageError(
            f"Holdfast's folder `{home}` cannot be used: {error.strerror}.",
            "Set HOLDFAST_HOME to a folder that you may write to, with free space.",
        ) from error


def _require_own(paths: Sequence[Path]) -> None:
    """`paths` begin with the home; each lies in the one before."""
    home, is_closed = paths[0], False
    for path in paths:
        status = os.stat(path)
        if not is_own(status):
            raise HostError(
                f"Holdfast does not use `{path}`: it belongs to another account{_called(status.st_uid)}.",
                _remedy(path),
            )
        if status.st_mode & OTHERS_WRITE:
            if not is_closed:
                is_shared = bool(status.st_mode & stat.S_ISVTX)
                remedy = _without_command() if is_shared else _if_yours(f"chmod go-rwx {pasted(str(home))}")
                raise HostError(f"Holdfast does not use `{path}`: others may write to it.", remedy)
            os.chmod(path, stat.S_IMODE(status.st_mode) & ~OTHERS_WRITE)  # made under umask 002; nobody could get there
        is_closed = is_closed or not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _remedy(path: Path) -> str:
    """Where another account owns it. What is not Holdfast's, such as /tmp, is not to be taken from its owner."""
    if os.geteuid() == 0:
        return _as_root()
    is_named = path.name in (".holdfast", *Home.NAMES)
    is_ours = is_named or any(os.path.lexists(path / each) for each in (MARKER, *Home.NAMES))
    return _if_yours(give_back(str(path))) if is_ours else _without_command()


def _as_root() -> str:
    return f"With sudo, use root's own home: sudo -H holdfast …\nOr choose another folder: {_CHOOSE}"


def _if_yours(command: str) -> str:
    return f"If it is yours: {command}\nIf not, choose another folder: {_CHOOSE}"


def _without_command() -> str:
    return _as_root() if os.geteuid() == 0 else f"Choose another folder: {_CHOOSE}"


def _called(uid: int) -> str:
    name = account_name(uid)
    return f" (`{name}`)" if name else ""
