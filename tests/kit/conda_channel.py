"""Conda channels for tests: packages made from texts, and a `python` package made from an interpreter of the machine.

A channel is a folder; `url` is its `file://` address, and any HTTP server can give it out. Nothing here needs conda.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLACEHOLDER = "/opt/" + "_placehold" * 24
"""What stands for the prefix inside packages. As long as conda-build's: a longer prefix does not fit into a binary."""

_LEFT_OUT = re.compile(
    r"__pycache__|site-packages|dist-packages|tests?|idlelib|tkinter|turtledemo|lib2to3|ensurepip|pydoc_data|config-.+"
    r"|_(test|xx).*\.so"
)
_DESCRIBE = """
import json, sys, sysconfig
v = sysconfig.get_config_var
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "prefix": sys.base_prefix, "stdlib":
sysconfig.get_path("stdlib"), "executable": getattr(sys, "_base_executable", sys.executable), "libraries":
v("LIBDIR"), "library": v("INSTSONAME") if v("Py_ENABLE_SHARED") else ""}))
"""


@dataclass(frozen=True)
class Content:
    """A file of a package. `mode` says how the placeholder in it is replaced: `text`, `binary`, or not at all."""

    data: bytes
    mode: str = ""
    executable: bool = False


@dataclass(frozen=True)
class Package:
    """`noarch` is `generic`, `python` (modules go to `site-packages/`), or empty for one of `linux-64`."""

    name: str
    version: str = "1.0"
    build: str = "0"
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    noarch: str = "generic"
    platform: str = "linux-64"
    files: Mapping[str, str | Content] = field(default_factory=dict)
    entry_points: tuple[str, ...] = ()

    @property
    def subdir(self) -> str:
        return "noarch" if self.noarch else self.platform

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}-{self.build}.tar.bz2"


class Channel:
    """A folder that conda's tools take for a channel."""

    def __init__(self, folder: Path, *packages: Package) -> None:
        self.folder = folder
        self._records: dict[str, dict[str, Any]] = {"noarch": {}, "linux-64": {}}
        for package in packages:
            self._add(package)
        self._index()

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def add(self, *packages: Package) -> None:
        for package in packages:
            self._add(package)
        self._index()

    def archive(self, name: str) -> Path:
        """The newest archive of the package of this name."""
        return max(self.folder.glob(f"*/{name}-*.tar.bz2"), key=lambda path: path.stat().st_mtime_ns)

    def _add(self, package: Package) -> None:
        data = archive(package)
        path = self.folder / package.subdir / package.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self._records.setdefault(package.subdir, {})[package.file_name] = {
            **index(package),
            "sha256": hashlib.sha256(data).hexdigest(),
            "md5": hashlib.md5(data).hexdigest(),
            "size": len(data),
        }

    def _index(self) -> None:
        for subdir, records in self._records.items():
            folder = self.folder / subdir
            folder.mkdir(parents=True, exist_ok=True)
            described = {
                "info": {"subdir": subdir},
                "packages": records,
                "packages.conda": {},
                "removed": [],
                "repodata_version": 1,
            }
            (folder / "repodata.json").write_text(json.dumps(described))


def archive(package: Package) -> bytes:
    """The package as a `.tar.bz2`, the same bytes each time."""
    files = {
        name: Content(content.encode(), "text" if PLACEHOLDER in content else "")
        if isinstance(content, str)
        else content
        for name, content in package.files.items()
    }
    paths = [_path(name, content) for name, content in sorted(files.items())]
    infos = {
        "info/index.json": Content(json.dumps(index(package), sort_keys=True).encode()),
        "info/paths.json": Content(json.dumps({"paths": paths, "paths_version": 1}).encode()),
    }
    if package.noarch == "python":
        link = {"noarch": {"type": "python", "entry_points": list(package.entry_points)}, "package_metadata_version": 1}
        infos["info/link.json"] = Content(json.dumps(link).encode())
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in {**infos, **dict(sorted(files.items()))}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content.data), 0o755 if content.executable else 0o644
            tar.addfile(entry, io.BytesIO(content.data))
    return bz2.compress(stream.getvalue(), 1)


def index(package: Package) -> dict[str, Any]:
    described = {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "build_number": int(number[0]) if (number := re.search(r"\d+$", package.build)) else 0,
        "depends": list(package.depends),
        "constrains": list(package.constrains),
        "subdir": package.subdir,
        "timestamp": 1_600_000_000_000,
    }
    if package.noarch:
        return {**described, "noarch": package.noarch}
    return {**described, "arch": "x86_64", "platform": "linux"}


def python_module(name: str, version: str = "1.0", depends: tuple[str, ...] = (), build: str = "py_0") -> Package:
    """A pure Python package as conda has them: a module, its metadata, and a command of the package's name."""
    module = name.replace("-", "_")
    return Package(
        name,
        version,
        build,
        ("python >=3.6", *depends),
        noarch="python",
        files={
            f"site-packages/{module}.py": f'__version__ = "{version}"\n\n\ndef main():\n    print(__version__)\n',
            f"site-packages/{module}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\n"
            f"Version: {version}\n",
            f"site-packages/{module}-{version}.dist-info/INSTALLER": "conda",
            f"site-packages/{module}-{version}.dist-info/RECORD": f"{module}.py,,\n",
        },
        entry_points=(f"{name} = {module}:main",),
    )


_SITE = b"""import site, sys, sysconfig
site.addsitedir("%s/lib/python%d.%d/site-packages" % ((sys.prefix,) + sys.version_info[:2]))
sysconfig._INSTALL_SCHEMES["posix_local"] = sysconfig._INSTALL_SCHEMES["posix_prefix"]
"""
"""Debian's own Python searches and installs in other folders than conda's."""


def python_package(interpreter: Path | None = None) -> Package:
    """The interpreter with its standard library, usable under any prefix. Takes a few seconds to make."""
    said = subprocess.run(
        [str(interpreter or sys.executable), "-I", "-c", _DESCRIBE], capture_output=True, text=True, check=True
    ).stdout
    described: dict[str, str] = json.loads(said)
    minor = described["version"].rpartition(".")[0]
    files: dict[str, Content] = {}
    for name, path in _python_files(described, minor):
        data = _relocated(_without_symbols(path), described["prefix"])
        is_text = PLACEHOLDER.encode() in data
        files[name] = Content(data, "text" if is_text else "", executable=name.startswith("bin/"))
    for name in ("bin/python", "bin/python3"):
        files[name] = files[f"bin/python{minor}"]
    if files.pop(f"lib/python{minor}/EXTERNALLY-MANAGED", None):
        files[f"lib/python{minor}/sitecustomize.py"] = Content(_SITE)
    files[f"lib/python{minor}/site-packages/README.txt"] = Content(b"Third-party modules.\n")
    return Package("python", described["version"], "0_cpython", ("__glibc >=2.17",), noarch="", files=files)


def _path(name: str, content: Content) -> dict[str, Any]:
    described = {
        "_path": name,
        "path_type": "hardlink",
        "sha256": hashlib.sha256(content.data).hexdigest(),
        "size_in_bytes": len(content.data),
    }
    if content.mode:
        return {**described, "file_mode": content.mode, "prefix_placeholder": PLACEHOLDER}
    return described


def _python_files(described: Mapping[str, str], minor: str) -> Iterator[tuple[str, Path]]:
    yield f"bin/python{minor}", Path(described["executable"]).resolve()
    if described["library"]:
        yield f"lib/{described['library']}", Path(described["libraries"], described["library"])
    stdlib = described["stdlib"]
    for folder, folders, files in os.walk(stdlib):
        folders[:] = sorted(name for name in folders if not _LEFT_OUT.fullmatch(name))
        for name in sorted(files):
            if not _LEFT_OUT.fullmatch(name):
                path = Path(folder, name)
                yield f"lib/python{minor}/{path.relative_to(stdlib).as_posix()}", path


def _without_symbols(path: Path) -> bytes:
    """Debugging symbols are two thirds of a Python that was built on the machine."""
    strip = shutil.which("strip")
    data = path.read_bytes()
    if strip is None or len(data) < 1_000_000 or not data.startswith(b"\x7fELF"):
        return data
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder, path.name)
        done = subprocess.run([strip, "-g", "-o", str(stripped), str(path)], capture_output=True)
        return stripped.read_bytes() if done.returncode == 0 else data


def _relocated(data: bytes, prefix: str) -> bytes:
    """Texts get the placeholder. A program that looks for its library at a fixed place gets one relative to itself,
    as conda's own packages have it."""
    if not data.startswith(b"\x7fELF"):
        return data if prefix == "/usr" else data.replace(prefix.encode(), PLACEHOLDER.encode())
    fixed, relative = f"{prefix}/lib\0".encode(), b"$ORIGIN/../lib\0"
    return data.replace(fixed, relative.ljust(len(fixed), b"\0")) if len(fixed) >= len(relative) else data
