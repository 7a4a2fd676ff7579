"""The host's settings for pip reach uv."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.farside.environments import settings
from holdfast.farside.environments.settings import secrets_in, translated


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine without settings, except those that the test writes."""
    monkeypatch.setattr(settings, "_SYSTEM_BUNDLES", ())
    original = settings._pip_files
    monkeypatch.setattr(settings, "_pip_files", lambda env: [each for each in original(env) if each != "/etc/pip.conf"])
    return {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "etc")}


def write(host: dict[str, str], relative: str, text: str) -> None:
    path = Path(host["HOME"]) / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_indexes_of_pips_file_are_uvs(host):
    text = "[global]\nindex-url = https://me:word@one/simple\nextra-index-url =\n  https://two/simple\n  https://three/simple\n"
    write(host, ".config/pip/pip.conf", text + "find-links = /a /b\ntrusted-host = two\nproxy = http://proxy:3128\n")

    assert translated(host) == {
        "UV_DEFAULT_INDEX": "https://me:word@one/simple",
        "UV_INDEX": "https://two/simple https://three/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/a,/b",
        "UV_INSECURE_HOST": "two",
        "HTTPS_PROXY": "http://proxy:3128",
        "HTTP_PROXY": "http://proxy:3128",
    }


def test_pips_variables_outrank_its_files_and_later_files_earlier_ones(host):
    write(host, "etc/pip/pip.conf", "[global]\nindex-url = https://machine/simple\n")
    write(host, ".pip/pip.conf", "[install]\nindex-url = https://account/simple\n")

    assert translated(host)["UV_DEFAULT_INDEX"] == "https://account/simple"
    assert translated(dict(host, PIP_INDEX_URL="https://mine/simple"))["UV_DEFAULT_INDEX"] == "https://mine/simple"


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS", ""])
def test_where_uv_is_told_itself_pips_indexes_do_not_count(host, name):
    """By a variable, or by a file of its own."""
    write(host, ".config/pip/pip.conf", "[global]\nindex-url = https://one/simple\n")
    if not name:
        write(host, ".config/uv/uv.toml", 'index-url = "https://uv/simple"\n')

    assert translated({**host, **({name: "https://uv/simple"} if name else {})}) == {}


def test_configured_certificates_are_used_and_else_the_systems(host, monkeypatch):
    write(host, "some.pem", "-")
    bundle = str(Path(host["HOME"]) / "some.pem")

    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"):
        assert translated({**host, name: bundle}) == {"SSL_CERT_FILE": bundle}
    monkeypatch.setattr(settings, "_SYSTEM_BUNDLES", (bundle,))
    assert translated(host) == {"SSL_CERT_FILE": bundle}
    assert translated({**host, "SSL_CERT_FILE": "/other.pem"}) == {}


@pytest.mark.parametrize("text", ["", "no section", "[global\nindex-url=x", "[global]\nindex-url\n", "\0"])
def test_no_settings_and_a_damaged_file_of_pips_are_no_reason_to_fail(host, text):
    write(host, ".config/pip/pip.conf", text)

    assert translated(host) == {}


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("UV_DEFAULT_INDEX", "https://me:w0rd@one/simple", ["w0rd"]),
        ("UV_INDEX", "https://me:w0rd@one/s https://t0ken@two/s https://three/s", ["t0ken", "w0rd"]),
        ("UV_INDEX", "ours=https://me:w0rd@one/s", ["w0rd"]),
        ("UV_FIND_LINKS", "https://me:one@one/w,https://me:two@two/w", ["one", "two"]),
        ("UV_DEFAULT_INDEX", "https://me:p@ss@one/simple", ["p%40ss", "p@ss"]),
        ("UV_DEFAULT_INDEX", "https://me:p%40ss@one/simple", ["p%40ss", "p@ss"]),
        ("UV_DEFAULT_INDEX", "https://t0ken:@one/simple", ["t0ken"]),
        ("UV_DEFAULT_INDEX", "https://t0ken:x-oauth-basic@one/simple", ["t0ken", "x-oauth-basic"]),
        ("UV_FIND_LINKS", "https://one/w?sv=1&sig=ab%3D&X-Amz-Signature=cd#x", ["ab%3D", "ab=", "cd"]),
        ("CONDA_CHANNEL_ALIAS", "https://one/t/tk-1/c", ["tk-1"]),
        ("HTTPS_PROXY", "http://me:w0rd@proxy:3128", ["w0rd"]),
        ("http_proxy", "me:w0rd@proxy:3128", ["w0rd"]),
        ("UV_INDEX_OURS_PASSWORD", "w0rd", ["w0rd"]),
        ("UV_INDEX_OURS_USERNAME", "me", []),
        ("UV_DEFAULT_INDEX", "https://one:8080/simple", []),
        ("UV_DEFAULT_INDEX", "https://one/simple/@two", []),
        ("LANG", "en_US.UTF-8@euro", []),
        ("HOME", "/home/me", []),
    ],
)
def test_what_is_secret_in_the_settings_is_known_so_that_it_can_be_masked(name, value, secrets):
    assert secrets_in({name: value}) == secrets
