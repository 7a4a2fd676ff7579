"""Packages that this machine chooses and downloads for another one, from real indexes and servers."""

from __future__ import annotations

import hashlib
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from holdfast.environments.environment_plan import Wishes, plan_environment
from holdfast.environments.foreign_resolution import (
    ForeignMachine,
    Installer,
    WheelFile,
    index_variables,
    resolve_for,
    wheel_files,
)
from holdfast.environments.wheel_download import Access, PackageDownload
from holdfast.errors import PreparationError
from holdfast.plan import EnvironmentPlan, text
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.workbench.submitting.tools import find_uv
from kit.flows import Way
from kit.link import Link
from kit.package_server import package_index
from kit.wheels import make_wheel

NEW, OLD = ForeignMachine("linux-x86_64-glibc2.36", "3.11.2"), ForeignMachine("linux-x86_64-glibc2.17", "3.8.18")
ARM = ForeignMachine("linux-aarch64-glibc2.31", "3.10.4")


@pytest.fixture
def uv(tmp_path: Path) -> Installer:
    variables = {**os.environ, **index_variables(os.environ, Path.home())}
    return Installer(find_uv(), variables, {}, tmp_path, tmp_path)


def asked(*lines: str, locks: tuple[dict[str, object], ...] = ()) -> EnvironmentPlan:
    spec = EnvironmentSpec(pip=tuple(Requirement(line, number, "r.txt") for number, line in enumerate(lines, 1)))
    return plan_environment(spec, "s" * 64, text("python"), text("uv"), locks, Wishes())


@pytest.mark.parametrize(
    ("machine", "tag"),
    [(NEW, "cp311-cp311-manylinux"), (OLD, "cp38-cp38-manylinux_2_17_x86_64"), (ARM, "manylinux_2_17_aarch64")],
    ids=str,
)
def test_the_wheel_is_for_the_other_machine(uv: Installer, machine: ForeignMachine, tag: str) -> None:
    plan = asked("markupsafe==2.1.5")
    lock = resolve_for(machine, plan, uv)
    (found,) = wheel_files(lock, machine, plan, uv)
    assert (lock["platform"], lock["python"]) == (machine.platform, machine.python)
    assert tag in found.name
    assert f"--hash=sha256:{found.sha256}" in lock["requirements"]


def test_versions_that_other_machines_have_are_kept(uv: Installer) -> None:
    other: dict[str, object] = {"requirements": "markupsafe==2.1.3\n"}
    lock = resolve_for(NEW, asked("markupsafe", locks=(other,)), uv)
    assert "markupsafe==2.1.3" in lock["requirements"]


def test_a_package_that_has_no_wheel_for_an_older_system_is_named_with_those_it_has(uv: Installer) -> None:
    with pytest.raises(PreparationError) as caught:
        resolve_for(OLD, asked("six", "pandas==2.3.3"), uv)
    assert "There is no wheel for linux-x86_64-glibc2.17 with Python 3.8.18" in caught.value.message
    assert "pandas==2.3.3" in caught.value.message
    assert "r.txt:2" in caught.value.message


def test_a_package_out_of_a_repository_is_refused(uv: Installer) -> None:
    lock = {"backend": "", "requirements": "six @ git+https://example.invalid/six@0123\n"}
    with pytest.raises(PreparationError, match="`six` comes out of a repository"):
        wheel_files(lock, NEW, asked("six"), uv)


def test_an_unknown_package_name_is_reported_in_uvs_words(uv: Installer) -> None:
    with pytest.raises(PreparationError, match="no-such-package-at-all was not found"):
        resolve_for(NEW, asked("no-such-package-at-all"), uv)


def read_all(access: Access, url: str, content: bytes) -> bytes:
    file = WheelFile("thing", "thing-1.0-py3-none-any.whl", url, hashlib.sha256(content).hexdigest())
    download = PackageDownload(file, access, sleep=lambda _: None)
    return b"".join(iter(lambda: download.read(1 << 20), b""))


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "wheels", "thing", "1.0", {"thing.py": "x" * (2 << 20)})


def test_a_login_out_of_the_address_or_netrc_or_the_variables_opens_an_index(wheel: Path, tmp_path: Path) -> None:
    with package_index(wheel.parent, "me:p@ss") as index:
        plain = f"http://127.0.0.1:{index.port}/files/{wheel.name}"
        known = index.url("me:p%40ss")
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password p@ss\n")
        ways = [
            Access({}, [f"--extra-index-url {known}"], tmp_path),
            Access({"UV_INDEX": f"{index.url()} {known}"}, [], tmp_path),
            Access(
                {"UV_INDEX": f"own={index.url()}", "UV_INDEX_OWN_USERNAME": "me", "UV_INDEX_OWN_PASSWORD": "p@ss"},
                [],
                tmp_path,
            ),
            Access({"NETRC": str(tmp_path / "netrc")}, [], tmp_path),
        ]
        for access in ways:
            assert read_all(access, plain, wheel.read_bytes()) == wheel.read_bytes()
        assert read_all(Access({}, [], tmp_path), plain.replace("//", "//me:p%40ss@"), wheel.read_bytes())
        assert not index.refused
        with pytest.raises(PreparationError) as caught:
            read_all(Access({}, [f"-i {known.replace('127.0.0.1', 'localhost')}"], tmp_path), plain, b"")
        assert ".netrc" in caught.value.hint, "a login of another host is not given away"


def test_a_link_that_breaks_in_the_middle_is_tried_again(wheel: Path, tmp_path: Path) -> None:
    with package_index(wheel.parent) as index, Link(index.port) as link:
        link.cut_after(1_500_000, Way.TO_CLIENT)
        url = f"http://127.0.0.1:{link.port}/files/{wheel.name}"
        assert read_all(Access({}, [], tmp_path), url, wheel.read_bytes()) == wheel.read_bytes()
        assert link.counters.cuts == 1


def test_a_proxy_is_used_and_its_exceptions_are_not(wheel: Path, tmp_path: Path) -> None:
    with package_index(wheel.parent) as proxy:
        variables = {"http_proxy": f"http://127.0.0.1:{proxy.port}", "NO_PROXY": "other.invalid, .inner.invalid"}
        access = Access(variables, [], tmp_path)
        url = f"http://index.invalid/files/{wheel.name}"
        assert read_all(access, url, wheel.read_bytes()) == wheel.read_bytes()
        assert proxy.seen == [url]
        for host in ("other.invalid", "a.inner.invalid:80"):
            with pytest.raises(PreparationError, match="cannot be downloaded"):
                read_all(access, url.replace("index.invalid", host), b"")
        assert len(proxy.seen) == 1
        with pytest.raises(PreparationError, match="SOCKS"):
            read_all(Access({"ALL_PROXY": "socks5://127.0.0.1:9"}, [], tmp_path), url, b"")


@pytest.fixture
def secure(wheel: Path, tmp_path: Path, needs: Callable[..., None]) -> Iterator[tuple[str, Path]]:
    """The address of the wheel on a server with its own certificate, and that certificate."""
    needs("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *given: object) -> None:
            super().__init__(*given, directory=str(wheel.parent))  # type: ignore[arg-type]  # what the server gives

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/{wheel.name}", certificate
    server.shutdown()
    thread.join()
    server.server_close()


def test_certificates_that_are_named_and_hosts_that_are_trusted_count(
    secure: tuple[str, Path], wheel: Path, tmp_path: Path
) -> None:
    url, certificate = secure
    content = wheel.read_bytes()
    with pytest.raises(PreparationError) as caught:
        read_all(Access({}, [], tmp_path), url, content)
    assert "SSL_CERT_FILE" in caught.value.hint
    for access in (
        Access({"SSL_CERT_FILE": str(certificate)}, [], tmp_path),
        Access({"UV_INSECURE_HOST": "127.0.0.1"}, [], tmp_path),
        Access({}, ["--allow-insecure-host 127.0.0.1"], tmp_path),
    ):
        assert read_all(access, url, content) == content
    with pytest.raises(PreparationError, match="certificates of this machine cannot be read"):
        Access({"SSL_CERT_FILE": str(tmp_path / "none.pem")}, [], tmp_path)
