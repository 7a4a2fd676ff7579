"""A driver that is too old for the usual build of PyTorch gets one that fits, and a machine without a GPU the build for
the CPU, from PyTorch's own index: a stand-in answers under its name, behind a proxy."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from integration.runs.conftest import Bench, bench  # noqa: F401 - a fixture
from kit.nvml import Device, Simulated
from kit.package_server import package_index, wheel_file, wheel_page
from kit.wheels import make_wheel

NAME = "download.pytorch.org"


@contextlib.contextmanager
def served(server: ThreadingHTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def torch_index(tmp_path: Path, needs: Callable[..., None]) -> Iterator[dict[str, str]]:
    """The variables with which uv meets the stand-in."""
    needs("openssl")
    wheels, key, certificate = tmp_path / "torch", tmp_path / "key.pem", tmp_path / "certificate.pem"
    make_wheel(wheels / "cu118", "torch", "2.7.1+cu118")
    make_wheel(wheels / "cpu", "torch", "2.13.0+cpu")
    empty = tmp_path / "empty"
    empty.mkdir()
    authority = make_certificate(tmp_path, key, certificate)

    class Index(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            backend, path = "cpu" if "cpu" in self.path else "cu118", self.path.replace("%2B", "+")
            is_known = path.startswith((f"/whl/{backend}/", "/files/"))
            read = wheel_page if path.endswith("/") else wheel_file
            found = read(wheels / backend, path) if is_known else None
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Type", "text/html" if path.endswith("/") else "binary/wheel")
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(found or b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with served(server) as port, served(ThreadingHTTPServer(("127.0.0.1", 0), proxy_to(port))) as proxy:
        yield {
            "HTTPS_PROXY": f"http://127.0.0.1:{proxy}",
            "NO_PROXY": "127.0.0.1",
            "SSL_CERT_FILE": str(authority),
            "UV_FIND_LINKS": str(empty),  # not what the machine has of its own
        }


def make_certificate(folder: Path, key: Path, certificate: Path) -> Path:
    """For the index's name, signed by this test's authority, whose certificate is returned."""
    authority, signing, request, about = (folder / name for name in ("ca.pem", "ca.key", "request.pem", "about.txt"))
    about.write_text(f"subjectAltName=DNS:{NAME}\nbasicConstraints=CA:FALSE\n")
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    commands: tuple[list[str | Path], ...] = (
        [*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", signing, "-out", authority],
        [*new, "-subj", f"/CN={NAME}", "-keyout", key, "-out", request],
        [
            "openssl",
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            request,
            "-CA",
            authority,
            "-CAkey",
            signing,
            "-CAcreateserial",
            "-extfile",
            about,
            "-out",
            certificate,
        ],
    )
    for words in commands:
        subprocess.run(words, check=True, capture_output=True)
    return authority


def proxy_to(port: int) -> type[BaseHTTPRequestHandler]:
    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            assert self.path == f"{NAME}:443"
            with socket.create_connection(("127.0.0.1", port)) as there:
                self.send_response(200)
                self.end_headers()
                back = threading.Thread(target=pass_on, args=(there, self.connection))
                back.start()
                pass_on(self.connection, there)
                back.join()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    return Proxy


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def test_an_old_driver_gets_a_build_that_it_can_run(
    bench: Bench,  # noqa: F811
    tmp_path: Path,
    torch_index: dict[str, str],
    needs: Callable[..., None],
) -> None:
    needs("gcc")
    gpus = Simulated(tmp_path / "gpus", [Device(pci="06c3:00:00.0")])
    gpus.driver, gpus.cuda = "470.57.02", 11040
    gpus.write()
    wheels = tmp_path / "usual"
    make_wheel(wheels, "torch", "2.13.0", needs=("nvidia-cuda-runtime==13.0.48",))
    make_wheel(wheels, "nvidia-cuda-runtime", "13.0.48")
    with package_index(wheels) as index:
        bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
        bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
        spec = f"dependencies:\n  - pip:\n      - --index-url {index.url()}\n      - torch\n"
        bench.write("aml_config/conda_dependencies.yml", spec)
        bench.write("t.py", "import torch\nprint(torch.__version__)\n")

        result = bench.submit("-c", "local", "t.py", env={**gpus.environment, **torch_index})
        again = bench.submit("-c", "local", "t.py", env={**gpus.environment, **torch_index})

    assert result.code == 0, result.err
    assert result.out.endswith("2.7.1+cu118\n")
    assert "470.57.02" in result.err
    assert again.out.endswith("2.7.1+cu118\n")
    assert not bench.event(bench.record()["run_id"], "environment")["built"]


def test_a_machine_without_a_gpu_gets_the_build_for_the_cpu_if_there_is_one(
    bench: Bench,  # noqa: F811
    tmp_path: Path,
    torch_index: dict[str, str],
) -> None:
    wheels = tmp_path / "usual"
    make_wheel(wheels, "torch", "2.13.0", needs=("nvidia-cuda-runtime==13.0.48",))
    make_wheel(wheels, "nvidia-cuda-runtime", "13.0.48")
    bench.write("t.py", "import torch\nprint(torch.__version__)\n")
    unreachable = {**torch_index, "HTTPS_PROXY": "http://127.0.0.1:1"}
    with package_index(wheels) as index:
        bench.write("requirements.txt", f"--index-url {index.url()}\ntorch\n")
        result = bench.submit("-d", "requirements.txt", "t.py", env=torch_index)
        again = bench.submit("-d", "requirements.txt", "t.py", env=torch_index)
        without = bench.submit("-d", "requirements.txt", "--upgrade", "t.py", env=unreachable)

    assert (result.code, result.out) == (0, again.out), result.err
    assert result.out.endswith("2.13.0+cpu\n")
    assert "Installing PyTorch 2.13.0+cpu, the build for the CPU" in result.err
    assert without.out.endswith("2.13.0\n"), without.err
    assert "(download.pytorch.org) cannot be reached." in without.err
