"""How a container reaches the package index that this machine reaches: its network, its certificates, its settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from package_index import uv_settings

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def reaching_packages(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Arguments for `docker run` that let uv in the container find what uv here finds."""
    settings = uv_settings(Path(sys.executable), environment)
    for name in (*_CERTIFICATES, *_PROXIES):
        if environment.get(name):
            settings[name] = environment[name]
    words = ["--network", "host"]
    for name, value in settings.items():
        words += ["-e", f"{name}={value}"]
    for path in sorted({path for value in settings.values() for path in _local(value)}):
        words += ["--mount", f"type=bind,src={path},dst={path},readonly"]
    return words


def _local(value: str) -> list[str]:
    """Files and folders of this machine that a setting names; for an index, also the folder that has its files."""
    found = [each.removeprefix("file://") for each in value.replace(",", " ").split()]
    paths = [Path(each) for each in found if each.startswith("/")]
    return [str(path.parent if path.name == "simple" else path) for path in paths if path.exists()]
