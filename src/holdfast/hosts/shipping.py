"""The far side as it is shipped: a few source files, named together by their content."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.frozen import dataclass

PACKAGE = Path(__file__).parent.parent
COMPLETE = ".complete"
"""Written last; it names the files."""


@dataclass(frozen=True)
class FarSide:
    """`files` maps paths as they are laid out over there (`holdfast/farside/agent.py`) to their contents."""

    digest: str
    files: tuple[tuple[str, bytes], ...]


def far_side() -> FarSide:
    """What runs over there: `farside/`, `__init__.py`, which is the in-run API, and `nvml/pynvml.py`, which has a
    folder of its own: scripts must not find it instead of theirs."""
    found = [("holdfast/__init__.py", _read(os.path.join(PACKAGE, "__init__.py")))]
    nvml = _pynvml(sys.path)
    if nvml is not None:
        found.append(("nvml/pynvml.py", nvml))
    for folder, folders, names in os.walk(os.path.join(PACKAGE, "farside")):
        folders[:] = [name for name in folders if name != "__pycache__"]
        there = "holdfast" + folder[len(os.fspath(PACKAGE)) :].replace(os.sep, "/")
        found += [(f"{there}/{name}", _read(os.path.join(folder, name))) for name in names if name.endswith(".py")]
    found.sort()
    total = hashlib.sha256()
    for name, content in found:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return FarSide(total.hexdigest()[:16], tuple(found))


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as source:
        return source.read()


def _pynvml(path: Sequence[str]) -> bytes | None:
    """NVIDIA's module, found without importing it, which takes long, or asking for its package, which takes longer.
    Another file of that name, in the folder where a command is typed, is passed over."""
    for folder in path:
        try:
            content = _read(os.path.join(folder, "pynvml.py"))
        except OSError:
            continue
        if b"NVIDIA Corporation" in content[:4096] and b"def nvmlInitWithFlags" in content:
            return content
    return None


def install(shipped: FarSide, home: Path) -> Path:
    """Unpack it below the home's `farside/`, whole or not at all; returns its folder. A repeat changes nothing."""
    final = home / "farside" / shipped.digest
    if _is_whole(final, shipped):
        return final
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = home / "farside" / f".new-{shipped.digest}-{os.getpid()}"
    try:
        for name, content in (*shipped.files, (COMPLETE, "\n".join(name for name, _ in shipped.files).encode())):
            target = new / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # a power cut must not leave empty files under the right name
        if final.is_dir() and not _is_whole(final, shipped):
            final.rename(new.with_name(f"{new.name}-old"))
            _remove(new.with_name(f"{new.name}-old"))
        new.rename(final)
    except OSError:
        _remove(new)
        if not final.is_dir():
            raise
    return final


def _is_whole(folder: Path, shipped: FarSide) -> bool:
    """Some systems remove single files that were not used for a while."""
    return (folder / COMPLETE).exists() and all((folder / name).exists() for name, _ in shipped.files)


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
