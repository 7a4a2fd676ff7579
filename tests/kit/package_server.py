"""A private package index: a folder of wheels over HTTP, open to all or with a password."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

_NOTHING: Callable[[], None] = lambda: None  # noqa: E731 - a default


@dataclass
class Index:
    """`login` is `user:password`, or empty. `seen` are the paths that were served, in order."""

    port: int
    login: str = ""
    seen: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def url(self, login: str = "") -> str:
        """Its address, with a login in it if one is given."""
        return f"http://{login + '@' if login else ''}127.0.0.1:{self.port}/simple"


@contextlib.contextmanager
def package_index(folder: Path, login: str = "", at_request: Callable[[], None] = _NOTHING) -> Iterator[Index]:
    """Serves the wheels of `folder`. `at_request` is called while a client waits for each of its answers."""
    index = Index(0, login)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(folder, index, at_request))
    index.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(folder: Path, index: Index, at_request: Callable[[], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            at_request()
            path = unquote(self.path)
            if index.login and self.headers.get("Authorization") != _basic(index.login):
                index.refused.append(path)
                self._answer(401, b"who are you?", ("WWW-Authenticate", 'Basic realm="packages"'))
                return
            found = wheel_page(folder, path) if path.startswith("/simple/") else wheel_file(folder, path)
            if found is None:
                self._answer(404, b"not here")
                return
            index.seen.append(path)
            self._answer(200, found, ("Content-Type", "text/html" if path.startswith("/simple/") else "binary/wheel"))

        do_HEAD = do_GET  # noqa: N815

        def _answer(self, code: int, body: bytes, *headers: tuple[str, str]) -> None:
            self.send_response(code)
            for name, value in (*headers, ("Content-Length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    return Handler


def _basic(login: str) -> str:
    return f"Basic {base64.b64encode(login.encode()).decode()}"


def wheel_page(folder: Path, path: str) -> bytes | None:
    name = path.strip("/").rpartition("/")[2].replace("-", "_")
    wheels = sorted(folder.glob(f"{name}-*.whl"))
    links = [f'<a href="/files/{each.name}#sha256={_sha256(each)}">{each.name}</a>' for each in wheels]
    return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode() if wheels else None


def wheel_file(folder: Path, path: str) -> bytes | None:
    found = folder / Path(path).name
    return found.read_bytes() if found.is_file() else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
