"""The host's settings for pip reach uv."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.farside.environments import settings
from holdfast.farside.environments.settings import translated


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine that has none of its own: only what the test writes."""
    monkeypatch.setattr(settings, "_SYSTEM_BUNDLES", ())
    original = settings._pip_files
    monkeypatch.setattr(settings, "_pip_files", lambda env: [each for each in original(env) if each != "/etc/pip.conf"])
    return {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "etc")}


def write(host: dict[str, str], relative: str, text: str) -> None:
    path = Path(host["HOME"]) / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_machine_without_settings_gets_none(host) -> None:
    assert translated(host) == {}


def test_indexes_of_pips_file_are_uvs(host) -> None:
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


def test_pips_variables_outrank_its_files_and_later_files_earlier_ones(host) -> None:
    write(host, "etc/pip/pip.conf", "[global]\nindex-url = https://machine/simple\n")
    write(host, ".pip/pip.conf", "[install]\nindex-url = https://account/simple\n")

    assert translated(host)["UV_DEFAULT_INDEX"] == "https://account/simple"
    assert translated(dict(host, PIP_INDEX_URL="https://mine/simple"))["UV_DEFAULT_INDEX"] == "https://mine/simple"


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS"])
def test_where_uv_is_told_itself_pips_indexes_do_not_count(host, name: str) -> None:
    write(host, ".config/pip/pip.conf", "[global]\nindex-url = https://one/simple\n")

    assert translated(dict(host, **{name: "https://uv/simple"})) == {}


def test_a_file_of_uvs_that_names_an_index_counts_instead_of_pips(host) -> None:
    write(host, ".config/pip/pip.conf", "[global]\nindex-url = https://one/simple\n")
    write(host, ".config/uv/uv.toml", 'index-url = "https://uv/simple"\n')

    assert translated(host) == {}


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"])
def test_certificates_that_somebody_named_are_used(host, name: str) -> None:
    write(host, "company.pem", "-")
    bundle = str(Path(host["HOME"]) / "company.pem")

    assert translated(dict(host, **{name: bundle})) == {"SSL_CERT_FILE": bundle}


def test_the_systems_certificates_are_used_where_nobody_named_any(host, monkeypatch) -> None:
    write(host, "system.pem", "-")
    monkeypatch.setattr(settings, "_SYSTEM_BUNDLES", (str(Path(host["HOME"]) / "system.pem"),))

    assert translated(host) == {"SSL_CERT_FILE": str(Path(host["HOME"]) / "system.pem")}
    assert translated(dict(host, SSL_CERT_FILE="/other.pem")) == {}


@pytest.mark.parametrize("text", ["no section", "[global\nindex-url=x", "[global]\nindex-url\n", "\0"])
def test_a_damaged_file_of_pips_is_no_reason_to_fail(host, text: str) -> None:
    write(host, ".config/pip/pip.conf", text)

    assert translated(host) == {}
