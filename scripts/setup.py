"""Make `.venv` with Holdfast in it (`--dev`: and the tools for working on it), pinned by `constraints.txt`.

Needs nothing but the Python that runs it. pip installs uv, uv installs the rest. If this Python cannot make an
environment with pip, setup uses a uv from PATH.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from package_index import uv_settings

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CONSTRAINTS = ROOT / "constraints.txt"


def main(arguments: list[str]) -> None:
    dev = "--dev" in arguments
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    environment.setdefault("UV_CACHE_DIR", str(ROOT / ".cache" / "uv"))
    environment.setdefault("PIP_CACHE_DIR", str(ROOT / ".cache" / "pip"))
    uv = find_or_make_uv(environment)
    environment.update(uv_settings(PYTHON, environment))
    say("Installing Holdfast" + (" and the tools for working on it" if dev else ""))
    install = [*uv, "pip", "install", "--quiet", "--python", str(PYTHON), "--constraints", str(CONSTRAINTS)]
    install += ["--build-constraints", str(CONSTRAINTS), "--editable", str(ROOT)]
    # The tools are started many times: what they import is compiled once, here.
    run([*install, *(["--group", "dev", "--compile-bytecode"] if dev else [])], environment)
    for stamp in (".setup-run", ".setup-dev") if dev else (".setup-run",):
        (VENV / stamp).touch()


def find_or_make_uv(environment: dict[str, str]) -> list[str]:
    """Make `.venv` unless there is a working one, and return the command for uv."""
    here = VENV / "bin" / "uv"
    if works(PYTHON):
        if here.exists():
            return [str(here)]
    elif VENV.exists():
        say("The environment in .venv does not work any more; making a new one")
        shutil.rmtree(VENV)
    if can_make_pip() or not shutil.which("uv"):
        if not works(PYTHON) or not has_pip(PYTHON):
            make_with_pip()
        pin = next(line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("uv=="))
        run([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", pin], environment)
        return [str(here)]
    if not works(PYTHON):
        run(["uv", "venv", "--quiet", "--python", sys.executable, str(VENV)], environment)
    return ["uv"]


def make_with_pip() -> None:
    if not can_make_pip():
        install_venv_package()
    say(f"Making .venv with Python {sys.version.split()[0]}")
    run([sys.executable, "-m", "venv", "--clear", str(VENV)], dict(os.environ))


def install_venv_package() -> None:
    """Debian has a separate package for the part of Python that makes environments."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit(
            f"error: {sys.executable} cannot make environments: its `ensurepip` module is missing.\n"
            f"  On Debian or Ubuntu: sudo apt-get install {package}\n"
            "  Or use another Python: make setup PYTHON=/path/to/python3"
        )
    say(f"Installing the system package {package}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], quiet)
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], quiet)


def can_make_pip() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("venv", "ensurepip"))


def works(python: Path) -> bool:
    enough = "import sys; sys.exit(sys.version_info < (3, 10))"
    return python.exists() and subprocess.run([str(python), "-c", enough], check=False).returncode == 0


def has_pip(python: Path) -> bool:
    return subprocess.run([str(python), "-c", "import pip"], capture_output=True, check=False).returncode == 0


def run(argv: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(argv, env=environment, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"error: this failed with exit code {done.returncode}: {' '.join(argv)}")


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
