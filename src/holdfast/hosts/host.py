"""The seam: a host is whatever can start the far side and hand over its streams. `Local`, this machine, starts it from
its folder by the Python that runs the client; `ssh.py` has the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from holdfast.errors import HostError, NotAvailable, StorageError
from holdfast.hosts.connection import Carrier, Connection, new_nonce
from holdfast.hosts.shipment import far_side, install
from holdfast.project.own_home import require_own, require_own_version


class Host(Protocol):
    """A machine that can be reached."""

    @property
    def name(self) -> str:
        """For people: `this machine`, `me@gpu1`."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether its disk is this machine's disk, so that paths here mean the same there."""
        ...

    def connect(self, may_ask: bool = True) -> Connection:
        """Returns when what leads there was started: whether it can be reached shows at the first request, which raises
        HostError if not. Without `may_ask` the user is never asked for a password: LoginNeeded says that one is needed.
        Raises StorageError when Holdfast's folder cannot be written. Each call makes a new connection; the caller
        closes it."""
        ...

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        """The command that runs `words` on the host with the terminal of the caller. Starts nothing."""
        ...

    def carrier(self, port: int) -> Carrier | None:
        """Of the port that programs on the host find at 127.0.0.1. None: that is a port of this machine. Starts
        nothing."""
        ...

    def alone(self) -> Host:
        """The same host with unshared connections: each ends its own login."""
        ...


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
        """What starts the far side, which is put into its folder if it is not there. Raises HostError where others may
        write to that folder."""
        if not sys.platform.startswith("linux"):
            raise NotAvailable(
                f"Runs on this machine need Linux, and this is {_SYSTEMS.get(sys.platform, sys.platform)}: only Linux "
                "lets Holdfast find and end every process that a run has started.",
                "Attach a Linux machine and submit there, or use Linux in a virtual machine or WSL.",
            )
        require_own(self._home)
        try:
            shipped = far_side(self._home)
            require_own_version(self._home, shipped.digest)
            folder = install(shipped, self._home)
        except OSError as error:
            raise StorageError(
                f"Holdfast's folder `{self._home}` cannot be written: {error.strerror}.",
                "Set HOLDFAST_HOME to a folder that you may write to, with free space.",
            ) from error
        entry = os.fspath(folder / "holdfast" / "farside" / "main.py")
        return [sys.executable, "-I", "-S", entry, "serve", os.fspath(self._home), nonce]


_SYSTEMS = {"win32": "Windows", "darwin": "macOS"}
