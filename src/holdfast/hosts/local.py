"""This machine as a host: the far side is started from its folder by the Python that runs the client."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.errors import HostError, NotAvailable, StorageError
from holdfast.hosts.connection import Connection, new_nonce
from holdfast.hosts.shipment import far_side, install


class Local:
    """`home` is the one folder that Holdfast has on this machine; `environment` is what a run here inherits."""

    name = "this machine"
    is_here = True

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._home = home
        self._environment = environment

    def connect(self, may_ask: bool = True) -> Connection:
        nonce = new_nonce()
        argv = self.argv(nonce)
        try:
            return Connection(argv, nonce, self._environment)
        except OSError as error:
            raise HostError(
                f"The far side could not be started: {error}.", "Is the Python of Holdfast still there?"
            ) from error

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def carrier(self, port: int) -> None:
        return None

    def alone(self) -> Local:
        return self

    def argv(self, nonce: str) -> list[str]:
        """What starts the far side, which is put into its folder if it is not there."""
        if not sys.platform.startswith("linux"):
            raise NotAvailable(
                f"Runs on this machine need Linux, and this is {_SYSTEMS.get(sys.platform, sys.platform)}: only Linux "
                "lets Holdfast find and end every process that a run has started.",
                "Attach a Linux machine and submit there, or use Linux in a virtual machine or WSL.",
            )
        try:
            folder = install(far_side(self._home), self._home)
        except OSError as error:
            raise StorageError(
                f"Holdfast's folder `{self._home}` cannot be written: {error.strerror}.",
                "Set HOLDFAST_HOME to a folder that you may write to, with free space.",
            ) from error
        entry = os.fspath(folder / "holdfast" / "farside" / "main.py")
        return [sys.executable, "-I", "-S", entry, "serve", os.fspath(self._home), nonce]


_SYSTEMS = {"win32": "Windows", "darwin": "macOS"}
