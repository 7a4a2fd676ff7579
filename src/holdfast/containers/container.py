"""The seam: a container is a wrapper of a command. Building the environment and running the script pass through it
alike."""

from __future__ import annotations

from typing import Protocol

from holdfast.plan import Command


class Container(Protocol):
    def wrap(self, command: Command) -> Command:
        """The command that runs `command` inside. Pure: it starts nothing and looks at nothing."""
        ...
