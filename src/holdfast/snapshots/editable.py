"""Packages installed in editable mode: a run imports them from a live folder, unless the snapshot has that folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.farside.system.real_paths import real_path
from holdfast.regular_files import read_json, read_regular
from holdfast.snapshots.ignore import explain
from holdfast.snapshots.warnings import SnapshotWarning, shown

_LARGEST = 16_000_000
_OURS = "holdfast"
"""A run gets its own copy of the in-run API, whatever is installed."""


def editable_installs(python: Path, home: Path | None = None) -> list[tuple[str, Path]]:
    """Package and folder of each, read from the interpreter's site-packages; the interpreter is not started.

    `home` adds the packages that `pip install --user` put below it.
    """
    found: dict[str, Path] = {}
    for site in _site_packages(python, home):
        try:
            names = sorted(os.listdir(site))
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                folder = _editable_folder(site / name / "direct_url.json")
                if folder is not None:
                    found.setdefault(_package_name(site / name), folder)
            elif name.endswith(".egg-link"):
                folder = _linked_folder(site / name)
                if folder is not None:
                    found.setdefault(name.removesuffix(".egg-link"), folder)
    return sorted(found.items())


def editable_warnings(
    python: Path, project_root: Path, home: Path | None = None, environment: Mapping[str, str] | None = None
) -> list[SnapshotWarning]:
    """Of what the snapshot has, a run imports its own copy (`farside/shim/sitecustomize.py`). `environment` is for
    git."""
    root = Path(real_path(project_root))
    installs = [each for each in editable_installs(python, home) if each[0] != _OURS]
    return [_warning(package, folder) for package, folder in installs if not _is_shipped(folder, root, environment)]


def _is_shipped(folder: Path, root: Path, environment: Mapping[str, str] | None) -> bool:
    place = Path(real_path(folder))
    if place == root:
        return True
    return root in place.parents and explain(root, os.path.relpath(place, root), environment) is None


def _warning(package: str, folder: Path) -> SnapshotWarning:
    live = f"The package `{package}` is used live from {shown(str(folder))}"
    message = f"{live}, so a later edit reaches the run."
    return SnapshotWarning(str(folder), message, f"To fix it in place: pip install {folder} (without -e)")


def _site_packages(python: Path, home: Path | None) -> Iterator[Path]:
    """The folders that this interpreter imports from, by the layouts of venv, pyenv, conda and Debian."""
    prefix = python.parent.parent
    configuration = _read_lines(prefix / "pyvenv.cfg")
    if configuration is None:
        yield from _below(Path(real_path(python)), home)
        return
    yield from _libraries(prefix, "python*")
    settings = dict(_setting(line) for line in configuration)
    if settings.get("include-system-site-packages") == "true" and settings.get("home"):
        base = _folder(settings["home"])
        if base is not None:
            yield from _below(Path(real_path(base / python.name)), home)


def _below(interpreter: Path, home: Path | None) -> Iterator[Path]:
    version = re.search(r"python(3\.\d+)", interpreter.name)
    library = f"python{version.group(1)}" if version else "python3.*"
    prefix = interpreter.parent.parent
    if home is not None:
        yield from _libraries(home / ".local", library)
    for place in dict.fromkeys((prefix, prefix / "local")):
        yield from _libraries(place, library)
    yield prefix / "lib/python3/dist-packages"


def _libraries(prefix: Path, library: str) -> Iterator[Path]:
    seen = set()
    for folder in ("lib", "lib64"):
        for packages in ("site-packages", "dist-packages"):
            for site in _found(prefix, f"{folder}/{library}/{packages}"):
                real = real_path(site)
                if real not in seen:
                    seen.add(real)
                    yield site


def _found(prefix: Path, pattern: str) -> list[Path]:
    """None below a folder whose name no file can have."""
    try:
        return sorted(prefix.glob(pattern))
    except (OSError, ValueError):
        return []


def _setting(line: str) -> tuple[str, str]:
    name, _, value = line.partition("=")
    return name.strip().lower(), value.strip()


def _editable_folder(direct_url: Path) -> Path | None:
    """PEP 610: `{"url": "file:///folder", "dir_info": {"editable": true}}`."""
    try:
        document = read_json(direct_url, _LARGEST)
        if document["dir_info"]["editable"] is not True:
            return None
        url = urlsplit(document["url"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return _folder(unquote(url.path, errors="surrogateescape")) if url.scheme == "file" else None


def _package_name(metadata: Path) -> str:
    for line in (_read_lines(metadata / "METADATA") or [])[:10]:
        if line.startswith("Name:"):
            return line.removeprefix("Name:").strip()
    return metadata.name.partition("-")[0]


def _linked_folder(link: Path) -> Path | None:
    lines = _read_lines(link)
    return _folder(lines[0].strip()) if lines else None


def _folder(written: str) -> Path | None:
    return Path(written) if written and "\0" not in written else None


def _read_lines(path: Path) -> list[str] | None:
    try:
        return read_regular(path, _LARGEST).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
