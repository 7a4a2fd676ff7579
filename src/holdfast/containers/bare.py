"""No container: the script sees the host as its user does."""

from __future__ import annotations

from holdfast.plan import Command


class Bare:
    def wrap(self, command: Command) -> Command:
        return command
