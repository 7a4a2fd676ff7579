"""What engines report about themselves (`docker info`), from `tests/cases/docker-info`."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.farside.containers.daemon import Daemon, parse_info

INFO = Path(__file__).parents[3] / "cases" / "docker-info"


def daemon(name: str = "debian-20.10") -> Daemon:
    return parse_info(json.loads((INFO / f"{name}.json").read_text()))
