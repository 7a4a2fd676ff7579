"""What ssh itself makes of a name: its configuration for one destination, in its own words (`ssh -G`)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

PATIENCE = 10.0
"""Seconds: a configuration may run programs (`Match exec`)."""


def settings(program: Sequence[str], place: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """By their names in lower case. `place` names the destination. Empty where ssh does not say."""
    try:
        said = subprocess.run(
            [*program, "-G", *place],
            env=dict(environment),
            capture_output=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = [line.partition(" ") for line in os.fsdecode(said.stdout).splitlines()]
    return {key: value for key, _, value in lines}
