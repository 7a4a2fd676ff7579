"""A Python that runs from any folder and in any image with this machine's glibc or a newer one, for uv to bring.

It is the system's own `python3` with the libraries that it needs beside it, packed as uv expects a download.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from kit.docker.daemon import CACHE
from kit.docker.holding import locked

_SYSTEM = Path("/usr/bin/python3")
_NOT_NEEDED = (
    "test",
    "tests",
    "__pycache__",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "config-*",
    "dist-packages",
)
_NOT_OURS = ("EXTERNALLY-MANAGED", "sitecustomize.py")
_OF_THE_IMAGE = re.compile(r"(ld-linux.*|lib(c|m|pthread|dl|rt|util|resolv|mvec))\.so")
"""glibc comes from the image: its loader fits no other."""


@dataclass(frozen=True)
class Downloads:
    """Pythons that uv can install, over HTTP on loopback, which a container on the host's network reaches."""

    version: str
    """Of the only Python that it has."""
    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {"UV_PYTHON_DOWNLOADS_JSON_URL": self.url}


@contextlib.contextmanager
def downloads() -> Iterator[Downloads]:
    archive = portable_python()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(archive))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Downloads(_version(), f"http://127.0.0.1:{server.server_address[1]}/downloads.json")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def portable_python() -> Path:
    """The archive, made once for each version of the system's Python."""
    recipe = Path(__file__).read_bytes() + _SYSTEM.resolve().read_bytes()
    final = CACHE / f"python-{hashlib.sha256(recipe).hexdigest()[:12]}.tar.gz"
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "python.lock"):
        if not final.exists():
            for old in CACHE.glob("python-*.tar.gz*"):
                old.unlink()
            with tempfile.TemporaryDirectory(dir=CACHE) as work:
                _lay_out(Path(work) / "python")
                new = final.with_name(f"{final.name}.new")
                subprocess.run(["tar", "-C", work, "-czf", new, "python"], check=True)
                new.replace(final)
    return final


def _lay_out(root: Path) -> None:
    name = _SYSTEM.resolve().name  # python3.11
    ignored = shutil.ignore_patterns(*_NOT_NEEDED, *_NOT_OURS)
    shutil.copytree(f"/usr/lib/{name}", root / "lib" / name, ignore=ignored, ignore_dangling_symlinks=True)
    (root / "lib" / name / "site-packages").mkdir()
    (root / "bin").mkdir()
    program = root / "bin" / name
    shutil.copy(_SYSTEM.resolve(), program)
    for short in ("python3", "python"):
        (root / "bin" / short).symlink_to(name)
    modules = sorted((root / "lib" / name / "lib-dynload").glob("*.so"))
    for library in sorted(set(_needed([program, *modules]))):
        shutil.copy(library, root / "lib" / library.name)
        _finds(root / "lib" / library.name, "$ORIGIN")
    _finds(program, "$ORIGIN/../lib")
    for module in modules:
        _finds(module, "$ORIGIN/../..")


def _needed(files: list[Path]) -> Iterator[Path]:
    """The shared libraries that are not glibc's, with those that they need in turn."""
    shown = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"=> (/\S+)", shown):
        if not _OF_THE_IMAGE.match(Path(path).name):
            yield Path(path)


def _finds(file: Path, folder: str) -> None:
    subprocess.run(["patchelf", "--set-rpath", folder, file], check=True, capture_output=True)


def _version() -> str:
    question = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    return subprocess.run([_SYSTEM, "-c", question], capture_output=True, text=True, check=True).stdout.strip()


def _listing(address: str) -> str:
    """What uv reads instead of its built-in list."""
    version, machine = _version(), platform.machine()
    entry = {
        "name": "cpython",
        "arch": {"family": machine, "variant": None},
        "os": "linux",
        "libc": "gnu",
        **dict(zip(("major", "minor", "patch"), (int(each) for each in version.split(".")), strict=True)),
        "prerelease": "",
        "url": f"http://{address}/python.tar.gz",
        "sha256": None,
        "variant": None,
        "build": "20240101",
    }
    return json.dumps({f"cpython-{version}-linux-{machine}-gnu": entry})


def _handler(archive: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            is_list = self.path == "/downloads.json"
            body = _listing(self.headers["Host"]).encode() if is_list else archive.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name it has there
            pass

    return Handler
