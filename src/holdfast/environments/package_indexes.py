"""How package indexes are reached from this machine: by the settings that builds on a host go by, said in the same
sentences when it fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.farside.environments.complaints import Complaint, explain
from holdfast.farside.environments.drivers import Machine, torch_is_too_new
from holdfast.farside.environments.locks import package_lines
from holdfast.farside.environments.settings import translated

Places = Sequence[tuple[str, str]]
"""Each line of a spec and where it stands."""


def index_variables(environment: Mapping[str, str], user_home: Path) -> dict[str, str]:
    """What has to be set beside `environment` so that uv goes by pip's settings too. May hold passwords: it goes into
    uv's environment and nowhere else."""
    known = dict(environment)
    known.setdefault("HOME", os.fspath(user_home))
    own = _own_file(environment, user_home)
    if not environment.get("PIP_CONFIG_FILE") and own is not None and own.is_file():
        known["PIP_CONFIG_FILE"] = os.fspath(own)
    return translated(known)


def complaint(output: str, lines: Places) -> Complaint:
    """What uv said when it failed: its own reason, the line of the spec that asked for it, and a remedy."""
    return explain(output, [list(each) for each in lines])


def needs_newer_driver(requirements: str, driver: str) -> bool:
    """Whether a lock has a build of PyTorch that this NVIDIA driver is known not to run."""
    return torch_is_too_new(package_lines(requirements), Machine(driver=driver))


def _own_file(environment: Mapping[str, str], user_home: Path) -> Path | None:
    """Where pip keeps its settings on systems other than Linux."""
    if sys.platform == "win32":
        return Path(environment.get("APPDATA") or user_home / "AppData" / "Roaming") / "pip" / "pip.ini"
    if sys.platform == "darwin":
        return user_home / "Library" / "Application Support" / "pip" / "pip.conf"
    return None
