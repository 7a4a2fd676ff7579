"""pip's settings for package indexes also apply to uv."""

from __future__ import annotations

import sys
from pathlib import Path

from package_index import pip_settings, translated, uv_settings


def test_settings_of_pip_are_read_and_variables_win():
    lines = [
        ":env:.default-timeout='180'",
        "global.index-url='https://one.example/simple'",
        "install.find-links='/wheels\\n/more'",
        "freeze.timeout='10'",
        ":env:.index-url='https://two.example/simple'",
        "WARNING: something else",
    ]

    assert pip_settings(lines) == {
        "default-timeout": "180",
        "index-url": "https://two.example/simple",
        "find-links": "/wheels\n/more",
    }


def test_settings_of_pip_become_variables_of_uv():
    settings = {
        "index-url": "https://one.example/simple",
        "extra-index-url": "https://two.example/simple\nhttps://three.example/simple",
        "find-links": "/wheels /more",
        "no-index": "true",
        "cert": "/ca.pem",
    }

    assert translated(settings, {}) == {
        "UV_DEFAULT_INDEX": "https://one.example/simple",
        "UV_INDEX": "https://two.example/simple https://three.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_NO_INDEX": "1",
        "SSL_CERT_FILE": "/ca.pem",
    }
    assert translated({"cert": "/ca.pem"}, {"SSL_CERT_FILE": "/mine.pem"}) == {}


def test_settings_of_uv_are_left_alone(tmp_path):
    python = Path(sys.executable)
    by_file = {"HOME": str(tmp_path), "PIP_INDEX_URL": "https://one.example/simple"}
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").touch()
    assert uv_settings(python, {"UV_INDEX": "https://mine.example", "PIP_INDEX_URL": "https://one.example"}) == {}
    assert uv_settings(python, by_file) == {}
