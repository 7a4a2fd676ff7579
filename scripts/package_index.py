"""Where packages come from on this machine: pip's settings as variables for uv.

uv reads neither `pip.conf` nor `PIP_*`. A user whose machine reaches packages only through a mirror has configured pip,
and should not have to do it twice. If uv is configured, nothing changes.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

_UV_CHOICES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_CONFIG_FILE",
)


def uv_settings(python: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables for uv with the settings of `python`'s pip. Empty if uv has its own settings."""
    if any(environment.get(name) for name in _UV_CHOICES) or any(path.exists() for path in _uv_files(environment)):
        return {}
    asked = subprocess.run(
        [str(python), "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        env=dict(environment),
        check=False,
    )
    return translated(pip_settings(asked.stdout.splitlines()), environment)


def pip_settings(lines: Iterable[str]) -> dict[str, str]:
    """`global.index-url='…'` lines as a dict. pip lists variables last; the later one wins."""
    found: dict[str, str] = {}
    for line in lines:
        name, separator, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if separator and section in ("global", "install", ":env:"):
            found[key] = str(ast.literal_eval(value))
    return found


def translated(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    result: dict[str, str] = {}
    if "index-url" in settings:
        result["UV_DEFAULT_INDEX"] = settings["index-url"]
    if "extra-index-url" in settings:
        result["UV_INDEX"] = " ".join(settings["extra-index-url"].split())
        result["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip: all indexes are equal
    if "find-links" in settings:
        result["UV_FIND_LINKS"] = ",".join(settings["find-links"].split())
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        result["UV_NO_INDEX"] = "1"
    if "cert" in settings and not environment.get("SSL_CERT_FILE"):
        result["SSL_CERT_FILE"] = settings["cert"]
    return result


def _uv_files(environment: Mapping[str, str]) -> list[Path]:
    home = Path(environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "/")) / ".config")
    return [home / "uv" / "uv.toml", Path("/etc/uv/uv.toml")]
