"""Conda channels that ask for a token or a password: it opens them, and appears in no file and no message."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments.conda_build import CondaDone
from integration.environments.conda_benches import conda_bench  # noqa: F401 - a fixture
from kit.conda_channel import Channel, Content, Package, archive


class Closed(http.server.SimpleHTTPRequestHandler):
    """Serves files to clients with the token or the password."""

    def do_GET(self) -> None:
        if self._is_let_in():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._is_let_in():
            super().do_HEAD()

    def _is_let_in(self) -> bool:
        if self.path.startswith("/t/tk-123/"):
            self.path = self.path[len("/t/tk-123") :]
        elif self.headers.get("Authorization") != "Basic " + base64.b64encode(b"ada:w0rd").decode():
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        if not os.path.exists(self.translate_path(self.path)):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        return True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[int]:
    Channel(tmp_path / "c", Package("x", files={"x.txt": "right", "big": Content(os.urandom(300_000))}))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Closed, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("secret", ["http://ada:w0rd@127.0.0.1:{}/c", "http://127.0.0.1:{}/t/tk-123/c"])
def test_a_closed_channel_opens_and_its_secret_stays_out_of_all_files(bench, closed, secret):
    name = secret.format(closed)
    packages = bench.packages([name], "x", f"{name}::x")
    done, progress = bench.install(packages, "p", name)

    assert done == CondaDone(packages)
    assert packages[0]["url"] == f"http://127.0.0.1:{closed}/c/noarch/x-1.0-0.tar.bz2"
    assert progress[-1].bytes == progress[-1].total == packages[0]["size"] > 300_000
    assert (bench.folder / "p/x.txt").read_text() == "right"
    written = b"".join(path.read_bytes() for path in bench.folder.rglob("*") if path.is_file())
    assert b"w0rd" not in written and b"tk-123" not in written
    assert "http://127.0.0.1" in json.dumps(json.loads((bench.folder / "p/conda-meta/x-1.0-0.json").read_text()))


def test_a_closed_channel_without_its_secret_is_a_problem_of_the_channel(bench, closed):
    problem = bench.solve([f"http://127.0.0.1:{closed}/c"], "x")

    assert problem.kind == "channel"
    assert "401" in problem.message


def test_a_download_that_is_another_file_is_not_installed(bench, closed):
    name = f"http://127.0.0.1:{closed}/t/tk-123/c"
    packages = bench.packages([name], "x")
    (bench.folder / "c/noarch/x-1.0-0.tar.bz2").write_bytes(archive(Package("x", files={"x.txt": "wrong"})))

    problem, _ = bench.install(packages, "p", name)

    assert problem.kind == "channel"
    assert "hash mismatch" in problem.message
    assert "tk-123" not in problem.message
