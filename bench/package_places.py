"""Places for rows that build environments: each tool keeps its package cache from one `make bench` to the next.

They are in `.cache/bench/places/`, caches and environments on one file system, as in a home. All tools use the package
index of this machine's pip, and nothing else of this machine.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import peers
from children import Place, make_place
from package_index import pip_settings, translated
from session import Session

PLACES = peers.HOME / "places"
PACKAGES = peers.ROOT / "bench" / "packages.txt"
ADDED = "seaborn==0.13.2"
"""A package whose dependencies are all among `PACKAGES`."""

_NETWORK = ("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_KEPT = (".cache", ".holdfast/cache", ".holdfast/.holdfast-home")


def kept_place(session: Session, name: str, tool: str = peers.OURS) -> Place:
    """Empty except for its package cache. Replaces what an interrupted run left."""
    place = replace(make_place(PLACES, name, session.tools[tool]), variables=tuple(index_variables().items()))
    clear(place)
    return place


def clear(place: Place) -> None:
    """Remove everything but the caches."""
    for folder in (place.project, place.root / "tmp"):
        remove(folder)
        folder.mkdir()
    _remove_all_but(place.home, [place.home / each for each in _KEPT])


def index_variables() -> dict[str, str]:
    """This machine's pip settings as variables, for pip and for programs that read its settings; and as uv's
    variables."""
    argv = [sys.executable, "-m", "pip", "config", "list"]
    asked = subprocess.run(argv, capture_output=True, text=True)
    settings = {key: value for key, value in pip_settings(asked.stdout.splitlines()).items() if key != "cache-dir"}
    named = {f"PIP_{key.upper().replace('-', '_')}": value for key, value in settings.items()}
    network = {name: value for name, value in _either_case(_NETWORK).items() if value}
    return {**network, **named, **translated(settings, os.environ), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def with_programs(place: Place, programs: Path) -> Place:
    """`programs` come first on its path."""
    path = f"{programs}:{place.environment()['PATH']}"
    return replace(place, variables=(*place.variables, ("PATH", path)))


def write_spec(place: Place, requirements: Iterable[str]) -> None:
    """The target `local` with an environment of these packages."""
    _write_target(place, "type: local\nuserManagedEnvironment: false\n")
    write_packages(place, requirements)


def write_packages(place: Place, requirements: Iterable[str]) -> None:
    """What the environments of the project are made of, on every target."""
    lines = "".join(f'      - "{each}"\n' for each in requirements)
    (_configuration(place) / "conda_dependencies.yml").write_text(f"dependencies:\n  - pip:\n{lines}")


def write_own_python(place: Place, python: Path) -> None:
    """The target `local` with this Python as it is, and nothing that asks for packages."""
    _write_target(place, f"type: local\nuserManagedEnvironment: true\npythonLocation: {python}\n")


def pinned(*names: str) -> list[str]:
    """The lines of `PACKAGES`, all or those of these names."""
    lines = [line for line in PACKAGES.read_text().splitlines() if line and not line.startswith("#")]
    return [line for line in lines if not names or line.partition("==")[0] in names]


def built_environments(place: Place) -> list[Path]:
    return sorted(mark.parent for mark in (place.home / ".holdfast" / "environments").glob("*/.complete"))


def forget_environments(place: Place) -> None:
    """As on a machine that has had these packages, but never this environment."""
    holdfast = place.home / ".holdfast"
    for folder in (holdfast / "environments", holdfast / "locks", place.project / ".holdfast"):
        remove(folder)


def remove(folder: Path) -> None:
    """Works even if folders in it are read-only."""
    for parent, folders, _ in os.walk(folder):
        for each in (parent, *(os.path.join(parent, name) for name in folders)):
            if not os.path.islink(each):
                os.chmod(each, stat.S_IMODE(os.stat(each).st_mode) | stat.S_IRWXU)
    if folder.exists():
        shutil.rmtree(folder)


def _write_target(place: Place, compute: str) -> None:
    folder = _configuration(place)
    (folder / "local.compute").write_text(compute)
    (folder / "local.runconfig").write_text("Target: local\nFramework: Python\n")


def _configuration(place: Place) -> Path:
    folder = place.project / "aml_config"
    folder.mkdir(exist_ok=True)
    return folder


def _remove_all_but(folder: Path, kept: Sequence[Path]) -> None:
    for each in folder.iterdir():
        if each in kept:
            continue
        if any(each in path.parents for path in kept):
            _remove_all_but(each, kept)
        elif each.is_dir() and not each.is_symlink():
            remove(each)
        else:
            each.unlink()


def _either_case(names: Sequence[str]) -> Mapping[str, str]:
    return {name: os.environ.get(name, "") or os.environ.get(name.lower(), "") for name in names}
