"""This machine as a host: the far side is started from its folder by the Python that runs the client."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import HostError, NotAvailable, StorageError
from holdfast.hosts.connection import Connection, new_nonce
from holdfast.hosts.shipping import far_side, install


class Local:
    """`home` is the one folder that Holdfast has on this machine; `environment` is what a run here inherits."""

    name = "this machine"
    is_here = True

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._home = home
        self._environment = environment

    def connect(self) -> Connection:
        if not sys.platform.startswith("linux"):
            raise NotAvailable(
                f"Runs on this machine need Linux, and this is {sys.platform}.",
                "Attach a Linux machine and submit there, or use Linux in a virtual machine or WSL.",
            )
        try:
            folder = install(far_side(), self._home)
        except OSError as error:
            raise StorageError(
                f"Holdfast's folder `{self._home}` cannot be written: {error.strerror}.",
                "Set HOLDFAST_HOME to a folder that you may write to, with free space.",
            ) from error
        nonce = new_nonce()
        entry = os.fspath(folder / "holdfast" / "farside" / "main.py")
        argv = [sys.executable, "-I", "-S", entry, "serve", os.fspath(self._home), nonce]
        try:
            return Connection(argv, nonce, self._environment)
        except OSError as error:
            raise HostError(
                f"The far side could not be started: {error}.", "Is the Python of Holdfast still there?"
            ) from error
