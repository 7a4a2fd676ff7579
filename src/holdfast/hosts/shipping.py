"""The far side as it is shipped: a few source files, named together by their content."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class FarSide:
    """`files` maps paths as they are laid out over there (`holdfast/farside/agent.py`) to their contents."""

    digest: str
    files: tuple[tuple[str, bytes], ...]


def far_side() -> FarSide:
    """What runs over there: `farside/`, and `__init__.py`, which is the in-run API."""
    found = [("holdfast/__init__.py", (PACKAGE / "__init__.py").read_bytes())]
    for folder, folders, names in os.walk(PACKAGE / "farside"):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(".py"):
                path = Path(folder) / name
                found.append(("holdfast/" + path.relative_to(PACKAGE).as_posix(), path.read_bytes()))
    found.sort()
    total = hashlib.sha256()
    for name, content in found:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return FarSide(total.hexdigest()[:16], tuple(found))


def install(shipped: FarSide, home: Path) -> Path:
    """Unpack it below the home's `farside/`, whole or not at all; returns its folder. A repeat changes nothing."""
    final = home / "farside" / shipped.digest
    if final.is_dir():
        return final
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = home / "farside" / f".new-{shipped.digest}-{os.getpid()}"
    try:
        for name, content in shipped.files:
            target = new / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # a power cut must not leave empty files under the right name
        new.rename(final)
    except OSError:
        import shutil

        shutil.rmtree(new, ignore_errors=True)
        if not final.is_dir():
            raise
    return final
