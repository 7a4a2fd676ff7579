"""Homes as an earlier command leaves them: with the far side, its bytecode, its remembered name, and uv.

To unpack and compile the far side takes longer than the rest of a short run, and to send uv longer than to build a
small environment. Tests of the first contact with a machine begin with an empty home.
"""

from __future__ import annotations

import functools
import os
import py_compile
import shutil
from pathlib import Path

from holdfast.farside.environments.platforms import build_name
from holdfast.hosts.shipment import far_side, install
from holdfast.workbench.submitting.tools import find_uv, uv_name
from kit.accounts import Account
from kit.docker.holding import locked

_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "homes"


def furnish(home: Path, has_uv: bool = True) -> Path:
    """Make the home of this machine; returns it."""
    recall(home)
    if not (home / "farside").exists():
        _lay(_template(), home / "farside" / _template().name, None)
        if has_uv:
            _lay(_tools(), home / "tools", None)
    return home


def recall(home: Path) -> Path:
    """Make the home of a client of other machines, which knows what it ships; returns it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    _template()
    if (_CACHE / "shipped").exists() and not (home / "shipped").exists():  # not if files were changed just now
        _link(str(_CACHE / "shipped"), str(home / "shipped"))
    return home


def share_packages(home: Path) -> Path:
    """Keep downloads for later sessions: tests of pages and templates need large packages."""
    kept = _CACHE.parent / "packages"
    kept.mkdir(parents=True, exist_ok=True)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "cache").symlink_to(kept)
    return home


def furnish_account(account: Account) -> Path:
    """Make the home on a box of this account; returns it."""
    owner = account.home.stat()
    home = account.home / ".holdfast"
    if home.exists():
        return home
    account.write(".holdfast/.holdfast-home", '{"format": 1}\n')
    _lay(_template(), home / "farside" / _template().name, (owner.st_uid, owner.st_gid))
    os.chown(home / "farside", owner.st_uid, owner.st_gid)
    _lay(_tools(), home / "tools", (owner.st_uid, owner.st_gid))
    return home


def _lay(source: Path, target: Path, owner: tuple[int, int] | None) -> None:
    """Copy a folder by hard links: its folders get that owner, its files stay ours and are readable by all."""
    shutil.copytree(source, target, copy_function=_link)
    if owner:
        for place, _, _ in os.walk(target):
            os.chown(place, *owner)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copy2(source, target)


@functools.cache
def _tools() -> Path:
    """A folder as a host's `tools`. Its uv is a link to the one beside Holdfast."""
    uv = find_uv()
    folder = _CACHE / f"tools-{uv_name(uv)}"
    program = folder / f"{uv_name(uv)}-{build_name()}" / "uv"
    _CACHE.mkdir(parents=True, exist_ok=True)
    with locked(_CACHE / "lock"):
        if not program.exists():
            program.parent.mkdir(parents=True, exist_ok=True)
            new = program.with_name("new")
            new.unlink(missing_ok=True)
            _link(uv, str(new))
            new.rename(program)
    return folder


@functools.cache
def _template() -> Path:
    _CACHE.mkdir(parents=True, exist_ok=True)
    with locked(_CACHE / "lock"):
        shipped = far_side(_CACHE)
        final = _CACHE / shipped.digest
        if not final.is_dir():
            new = _CACHE / "new"
            shutil.rmtree(new, ignore_errors=True)
            made = install(shipped, new)
            for source in (made / "holdfast").rglob("*.py"):
                if "shim" not in source.parts:  # what scripts import is compiled by them
                    py_compile.compile(str(source), doraise=True)
            made.rename(final)
    return final
