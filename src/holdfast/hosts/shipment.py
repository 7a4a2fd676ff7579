"""The far side as it is shipped: a few source files, named together by their content.

Reading and hashing them takes longer than all else that a command does before it connects, so the name is cached with
the stat of every file, as git does. The contents are read only if a host lacks them."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import HostError
from holdfast.farside.system.ownership import OTHERS_WRITE, is_only_ours, make_private
from holdfast.frozen import dataclass
from holdfast.whole_files import write_durably, write_whole

PACKAGE = Path(__file__).parent.parent
COMPLETE = ".complete"
"""Written last; it names the files."""
CACHE = "__pycache__"
_SETTLED = 2_000_000_000
"""Nanoseconds: a file changed more recently may change again without a new time."""


@dataclass(frozen=True)
class FarSide:
    """`sources` maps paths on the host (`holdfast/farside/agent.py`) to the files here."""

    digest: str
    sources: tuple[tuple[str, str], ...]

    def contents(self) -> list[tuple[str, bytes]]:
        """Raises HostError where they are not what the digest stands for: no version gets another's name."""
        found = _contents(self.sources)
        if _digest(found) != self.digest:
            raise HostError("Holdfast's own files were changed while this command ran.", "Try again.")
        return found


def far_side(home: Path) -> FarSide:
    """What runs on the host: `farside/`, and `__init__.py`, the in-run API. Its name is cached in `home`."""
    memory, sources = home / "shipped", tuple(sorted(_sources()))
    state, newest = _state([path for _, path in sources])
    digest = _recall(memory, state)
    if digest is None:
        digest = _digest(_contents(sources))
        if newest < time.time_ns() - _SETTLED:
            with contextlib.suppress(OSError):  # then the next command reads the files again
                make_private(os.fspath(home))
                write_whole(memory, f"{digest}\n{state}".encode(), 0o600)
    return FarSide(digest, sources)


def _sources() -> list[tuple[str, str]]:
    root = os.fspath(PACKAGE)
    found = [("holdfast/__init__.py", os.path.join(root, "__init__.py"))]
    folders = [os.path.join(root, "farside")]
    for folder in folders:
        there = "holdfast" + folder[len(root) :].replace(os.sep, "/")
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found.append((f"{there}/{entry.name}", entry.path))
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return found


def _state(paths: Sequence[str]) -> tuple[str, int]:
    """What shows that a file is another than before, and when the last one was changed."""
    stats = [os.stat(path) for path in paths]
    rows = ((each.st_size, each.st_mtime_ns, each.st_ctime_ns, each.st_ino) for each in stats)
    return repr(sorted(zip(paths, rows, strict=True))), max(each.st_ctime_ns for each in stats)


def _recall(memory: Path, state: str) -> str | None:
    try:
        digest, then = _read(os.fspath(memory)).decode().split("\n", 1)
    except (OSError, ValueError):
        return None
    return digest if then == state else None


def _contents(sources: Sequence[tuple[str, str]]) -> list[tuple[str, bytes]]:
    return [(name, _read(path)) for name, path in sources]


def _digest(contents: Sequence[tuple[str, bytes]]) -> str:
    import hashlib

    total = hashlib.sha256()
    for name, content in contents:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()[:16]


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as source:
        return source.read()


def install(shipped: FarSide, home: Path) -> Path:
    """Unpack it below the home's `farside/`, whole or not at all; returns its folder. A repeat changes nothing."""
    final = home / "farside" / shipped.digest
    if _is_whole(final, shipped):
        return final
    contents = shipped.contents()
    make_private(os.fspath(home / "farside"))
    new = home / "farside" / f".new-{shipped.digest}-{os.urandom(8).hex()}"
    try:
        for name, content in (*contents, (COMPLETE, "\n".join(name for name, _ in contents).encode())):
            _make_folder((new / name).parent, new.parent)
            write_durably(new / name, content)  # a power cut must not leave empty files under the right name
            _close(new / name)
        if final.is_dir() and not _is_whole(final, shipped):
            final.rename(new.with_name(f"{new.name}-old"))
            _remove(new.with_name(f"{new.name}-old"))
        new.rename(final)
    except OSError:
        _remove(new)
        if not final.is_dir():
            raise
    return final


def _make_folder(folder: Path, above: Path) -> None:
    """With the folder in which Python puts what it compiles: whoever may write there decides what runs."""
    if folder == above:
        return
    _make_folder(folder.parent, above)
    for each in (folder, folder / CACHE):
        if not each.is_dir():
            each.mkdir()
            _close(each)


def _close(path: Path) -> None:
    """The umask may let a group write."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS_WRITE:
        path.chmod(mode & ~OTHERS_WRITE)


def _is_whole(folder: Path, shipped: FarSide) -> bool:
    """Some systems remove single files that were not used for a while; and what others may write to is not ours."""
    root, names = os.fspath(folder), [COMPLETE, *(name for name, _ in shipped.sources)]
    folders = {os.path.dirname(name) for name in names}
    try:
        found = [os.stat(os.path.join(root, name)) for name in (*names, *folders)]
        for each in folders:
            with contextlib.suppress(FileNotFoundError):
                found.append(os.stat(os.path.join(root, each, CACHE)))
    except OSError:
        return False
    return all(map(is_only_ours, found)) or not hasattr(os, "geteuid")  # Windows says that all may write


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
