"""What a command finds around it: the one place where the environment, the home and the clock are read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Surroundings:
    """`home` is Holdfast's folder on this machine, `environment` the variables, `directory` where the command was
    typed."""

    home: Path
    environment: Mapping[str, str]
    directory: Path
    user_home: Path
    now: Callable[[], float] = time.time


def surroundings() -> Surroundings:
    environment = dict(os.environ)
    named = environment.get("HOLDFAST_HOME")
    home = Path(named).expanduser() if named else Path.home() / ".holdfast"
    return Surroundings(home.absolute(), environment, Path.cwd(), Path.home())
