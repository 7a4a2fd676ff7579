"""The installations that are measured: Holdfast from this tree, and its peers, each in an environment of its own.

They lie in `.cache/bench/`. Versions are pinned by `constraints.txt` and `bench/peers.txt`. Holdfast is built and
installed as for a user, not as an editable checkout. It is built again each time, the peers only when a pin changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from package_index import uv_settings

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".cache" / "bench"
PINS = ROOT / "bench" / "peers.txt"
OURS = "holdfast"
PEERS = ("submitit", "mlflow", "trackio", "dstack", "ray")

_STAMP = ".installed"


@dataclass(frozen=True)
class Tool:
    """An installation. `problem` says why it could not be made; the other fields are then empty."""

    name: str
    folder: Path
    version: str = ""
    problem: str = ""

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        return self.programs / "python"


@dataclass(frozen=True)
class Size:
    """What an installation takes on disk, without compiled bytecode, and how many distributions it has."""

    bytes: int
    packages: int


def install(names: Iterable[str], say: Callable[[str], None]) -> dict[str, Tool]:
    return {name: _installed(name, say) for name in names}


def measure_size(folder: Path) -> Size:
    """As `du` counts: blocks on disk, each file once. Files that are linked to a cache count too."""
    seen: set[int] = set()
    total = packages = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        if os.path.basename(parent) == "site-packages":  # deeper ones are copies that a package carries inside
            packages += sum(name.endswith(".dist-info") for name in folders)
        for name in (*folders, *files):
            stat = os.lstat(os.path.join(parent, name))
            if stat.st_ino not in seen:
                seen.add(stat.st_ino)
                total += stat.st_blocks * 512
    return Size(total, packages)


def version_of(name: str, folder: Path) -> str:
    """The version that the installed metadata names, or empty."""
    for found in folder.glob(f"lib/python*/site-packages/{name}-*.dist-info"):
        return found.name[len(name) + 1 : -len(".dist-info")]
    return ""


def install_into(folder: Path, what: Iterable[str]) -> str:
    """Make an environment there, with the arguments `what` for `uv pip install`. Returns the problem, or an empty
    text."""
    environment = _install_environment()
    try:
        _uv(["venv", "--python", sys.executable, str(folder)], environment)
        _uv(["pip", "install", "--python", str(folder / "bin" / "python"), *what], environment)
    except subprocess.CalledProcessError as error:
        return f"could not be installed: {_last_line(error.stderr)}"
    return ""


def uv_program() -> str:
    beside = Path(sys.executable).parent / "uv"
    return str(beside) if beside.exists() else shutil.which("uv") or "uv"


def _installed(name: str, say: Callable[[str], None]) -> Tool:
    folder = HOME / name
    key = hashlib.sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / _STAMP
    if name != OURS and stamp.exists() and stamp.read_text() == key:
        return Tool(name, folder, version_of(name, folder))
    say(f"installing {name}")
    if folder.exists():
        shutil.rmtree(folder)
    problem = install_into(folder, _what(name))
    if problem:
        return Tool(name, folder, problem=problem)
    stamp.write_text(key)
    return Tool(name, folder, version_of(name, folder))


def _what(name: str) -> list[str]:
    if name != OURS:
        return ["--constraints", str(PINS), name]
    constraints = str(ROOT / "constraints.txt")
    fresh = ["--refresh-package", OURS, "--reinstall-package", OURS]
    return [*fresh, "--constraints", constraints, "--build-constraints", constraints, str(ROOT)]


def _uv(arguments: list[str], environment: dict[str, str]) -> None:
    argv = [uv_program(), "--quiet", *arguments]
    subprocess.run(argv, env=environment, check=True, stderr=subprocess.PIPE, text=True)


def _install_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    environment.setdefault("UV_CACHE_DIR", str(ROOT / ".cache" / "uv"))
    environment.update(uv_settings(Path(sys.executable), environment))
    return environment


def _last_line(text: str) -> str:
    found = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return found[-1] if found else "no message"
