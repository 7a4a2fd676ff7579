"""The Python that a spec pins: one of the machine's, or one that uv installs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tarfile
from pathlib import Path

import pytest

from integration.environments.conftest import Managed
from integration.interpreters import FOUND

VERSIONS = ("python3.6", "python3.8", "python3.10", "python3.11", "python3.12", "python3.13")
SHOW = "import sys, six\nprint('%d.%d' % sys.version_info[:2], six.__version__)\n"
_NOT_NEEDED = {"test", "tests", "site-packages", "__pycache__", "idlelib", "tkinter", "turtledemo", "lib2to3"}


@pytest.mark.parametrize("name", [name for name in VERSIONS if name in FOUND])
def test_a_pinned_python_of_this_machine_is_built_with_and_imports(managed: Managed, name: str) -> None:
    version = name[len("python") :]
    managed.wants("six==1.16.0", python=version)
    managed.write("t.py", SHOW)
    path = f"{FOUND[name].parent}{os.pathsep}{os.environ['PATH']}"

    result = managed.submit("t.py", env={"PATH": path})

    assert (result.code, result.out) == (0, f"{version} 1.16.0\n"), result.err
    event = managed.environment()
    assert event["python"].startswith(version + ".")
    assert event["packages"] == ["six==1.16.0"]


@pytest.fixture
def foreign() -> Path:
    """A Python of a version that a run here does not find by itself."""
    for path in FOUND.values():
        prefix = path.resolve().parent.parent
        if path.name not in _on_path() and (prefix / "lib" / path.name / "os.py").exists():
            return path
    return pytest.skip("this machine has no Python but the system's")


def test_a_python_that_the_machine_lacks_is_brought_by_uv(managed: Managed, foreign: Path, tmp_path: Path) -> None:
    version = _version(foreign)
    downloads = _downloads(foreign, version, tmp_path)
    managed.wants("six==1.16.0", python=version.rpartition(".")[0])
    managed.write("t.py", SHOW)

    result = managed.submit("t.py", env={"UV_PYTHON_DOWNLOADS_JSON_URL": str(downloads), "PATH": _short_path()})

    assert (result.code, result.out) == (0, f"{version.rpartition('.')[0]} 1.16.0\n"), result.err
    assert managed.environment()["python"] == version
    assert list((managed.home / "pythons").glob(f"cpython-{version}-*")), "it is kept for others"
    again = managed.submit("t.py", env={"UV_PYTHON_DOWNLOADS_JSON_URL": "/nowhere.json", "PATH": _short_path()})
    assert again.code == 0, again.err
    managed.wants(python=version.rpartition(".")[0])
    managed.write("u.py", "import sys\nprint('%d.%d.%d' % sys.version_info[:3])\n")
    other = managed.submit("u.py", env={"UV_PYTHON_DOWNLOADS_JSON_URL": "/nowhere.json", "PATH": _short_path()})
    assert (other.code, other.out) == (0, version + "\n"), other.err


def test_a_python_that_is_nowhere_is_an_error_that_lists_the_available_ones(managed: Managed, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("{}")
    managed.wants("six==1.16.0", python="3.99")
    managed.write("t.py", SHOW)

    path = os.pathsep.join([*(str(each.parent) for each in FOUND.values()), os.environ["PATH"]])
    none = str(tmp_path / "none.json")

    result = managed.submit("t.py", env={"UV_PYTHON_DOWNLOADS_JSON_URL": none, "PATH": path})

    assert result.code == 250
    assert "this machine has no Python 3.99" in result.err
    for each in FOUND.values():
        assert _version(each) in result.err
    assert "Traceback" not in result.err


def _downloads(python: Path, version: str, folder: Path) -> Path:
    """What uv reads instead of its own list: one archive, made of a Python of this machine."""
    prefix, archive = python.resolve().parent.parent, folder / "python.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as target:
        target.add(python.resolve(), f"python/bin/{python.name}")
        for name in ("python", "python3"):
            link = tarfile.TarInfo(f"python/bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, python.name
            target.addfile(link)
        library = f"lib/{python.name}"
        target.add(prefix / library, f"python/{library}", filter=_needed)
    numbers = [int(each) for each in version.split(".")]
    entry = {
        "name": "cpython",
        "arch": {"family": platform.machine(), "variant": None},
        "os": "linux",
        "libc": "gnu",
        **dict(zip(("major", "minor", "patch"), numbers, strict=True)),
        "prerelease": "",
        "url": archive.as_uri(),
        "sha256": None,
        "variant": None,
        "build": "20240101",
    }
    path = folder / "downloads.json"
    path.write_text(json.dumps({f"cpython-{version}-linux-{platform.machine()}-gnu": entry}))
    return path


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = Path(entry.name).name
    return None if name in _NOT_NEEDED or name.startswith("config-") else entry


def _version(python: Path) -> str:
    question = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    return subprocess.run([python, "-c", question], capture_output=True, text=True, check=True).stdout.strip()


def _short_path() -> str:
    return "/usr/local/bin:/usr/bin:/bin"


def _on_path() -> set[str]:
    """Versions that a run would find by itself, with this PATH and its own home."""
    folders = [Path(each) for each in _short_path().split(":")]
    return {each.name for folder in folders for each in folder.glob("python3.*")}
