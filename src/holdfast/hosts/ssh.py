"""A Linux machine reached by the system's own `ssh`, so that ~/.ssh/config, agents, jump hosts, second factors and
hardware keys work as they do by hand. Host keys are checked by ssh; nothing here turns that off."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.errors import HoldfastError, HostError, HostKeyRefused, LoginNeeded, Unreachable
from holdfast.hosts import multiplexing
from holdfast.hosts.asking import Ask, Askpass, Pending
from holdfast.hosts.bootstrap import DEFAULT_HOME, archive, for_any_shell, remote_line
from holdfast.hosts.complaints import Where, explain, refused, silent
from holdfast.hosts.connection import Asked, Connection, Remote, new_nonce
from holdfast.hosts.shipping import far_side

__all__ = ["Destination", "HostKeyRefused", "Login", "LoginNeeded", "Near", "Ssh", "Unreachable"]

SHARED_PATIENCE = 6.0
"""Seconds until a session over an open connection must have spoken; then a new connection is made beside it."""
QUIET_PATIENCE = 25.0
"""Seconds for a whole login when nobody may be asked."""
_NEVER_FOR_CHILDREN = ("HOLDFAST_PASSWORD",)


@dataclass(frozen=True)
class Destination:
    """`address` may be a name of ~/.ssh/config; what is None is left to ssh."""

    address: str
    port: int | None = None
    username: str | None = None
    private_key: Path | None = None

    def __str__(self) -> str:
        user = f"{self.username}@" if self.username else ""
        address = f"[{self.address}]" if ":" in self.address and self.port else self.address
        return f"{user}{address}" + (f":{self.port}" if self.port else "")

    def by_hand(self) -> str:
        """The command a person would type to get there."""
        user = f"{self.username}@" if self.username else ""
        return "ssh " + (f"-p {self.port} " if self.port else "") + f"{user}{self.address}"


@dataclass(frozen=True)
class Login:
    """How to get in. `shares`: over an open connection if there is one, leaving one open; `only_key`: with the
    destination's key and nothing else; `only_password`: without any key."""

    shares: bool = True
    only_key: bool = False
    only_password: bool = False


@dataclass(frozen=True)
class Near:
    """What this machine gives: the program, Holdfast's folder here, the variables, where sockets may lie, and who
    answers questions (None: nobody)."""

    home: Path
    environment: Mapping[str, str]
    runtime: Path | None
    program: tuple[str, ...] = ("ssh",)
    ask: Ask | None = None


@dataclass(frozen=True)
class Ssh:
    """`home` is Holdfast's folder over there; `~` in it is the account's."""

    destination: Destination
    near: Near
    home: str = DEFAULT_HOME
    login: Login = field(default_factory=Login)

    is_here = False

    @property
    def name(self) -> str:
        return str(self.destination)

    def connect(self, may_ask: bool = True) -> Connection:
        """A failure shows at the first request, as Unreachable, LoginNeeded, HostKeyRefused or another HostError."""
        far, nonce = far_side(), new_nonce()
        line = remote_line(far, self.home, nonce)
        ask = self.near.ask if may_ask else None
        desk = _Desk(self, ask)
        ways = self._ways()
        options = ["-T", *_NO_FORWARDS, *(["-o", "BatchMode=yes"] if ask is None else [])]
        calls = [self.argv([line], options, way) for way in ways]
        where = Where(self.name, self.destination.by_hand())
        remote = Remote(
            others=calls[1:],
            patience=[SHARED_PATIENCE] * (len(ways) - 1) + [None if ask else QUIET_PATIENCE],
            supply=lambda: archive(far),
            explain=lambda said: explain(where, said),
            refuse=lambda word, rest: refused(where, word, rest),
            silent=lambda seconds: silent(where, seconds),
            closed=desk.close,
        )
        try:
            connection = Connection(calls[0], nonce, desk.environment, remote)
        except OSError as error:
            desk.close()
            raise self._no_program(error) from error
        desk.serve(connection)
        return connection

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        line = " ".join(for_any_shell(word) for word in words)
        return self.argv([line], ["-t", "-q", *_NO_FORWARDS])

    def argv(self, remote: Sequence[str], options: Sequence[str], sharing: Sequence[str] | None = None) -> list[str]:
        """The command line for ssh. `remote` is what the shell over there will read; `sharing` None: the first of the
        ways that `connect` would go."""
        ways = self._ways()[0] if sharing is None else sharing
        target = self.destination.address
        return [*self.near.program, *options, *_ALWAYS, *ways, *self._keys(), *self._place(), "--", target, *remote]

    def child_environment(self) -> dict[str, str]:
        """Without what no child may see."""
        return {name: value for name, value in self.near.environment.items() if name not in _NEVER_FOR_CHILDREN}

    def _place(self) -> list[str]:
        port, user = self.destination.port, self.destination.username
        return [*(["-p", str(port)] if port else []), *(["-l", user] if user else [])]

    def _ways(self) -> list[list[str]]:
        """How to share a connection, best first; where the first may be stuck, one that shares nothing follows."""
        if not self.login.shares:
            return [multiplexing.NO_SHARING]
        target = self.destination
        identity = [*self.near.program, str(target), str(self._key_here() or "")]
        own = multiplexing.own_socket(self.near.runtime, identity)
        if own is not None and own.exists():
            if multiplexing.answers(own):
                return [multiplexing.own_options(own), multiplexing.NO_SHARING]
            own.unlink(missing_ok=True)  # its master is dead or stuck: a new one takes the place
        users = self._users_socket()
        if users is not None and users.exists() and multiplexing.answers(users):
            return [[], multiplexing.NO_SHARING]
        return [multiplexing.own_options(own)] if own is not None else [multiplexing.NO_SHARING]

    def _users_socket(self) -> Path | None:
        """Where the user's own configuration keeps a connection open, if it does."""
        if os.name == "nt":
            return None
        argv = [*self.near.program, "-G", *self._place(), "--", self.destination.address]
        try:
            said = subprocess.run(
                argv,
                env=self.child_environment(),
                capture_output=True,
                timeout=5,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        for line in os.fsdecode(said.stdout).splitlines():
            key, _, value = line.partition(" ")
            if key == "controlpath" and value != "none":
                return Path(value).expanduser()
        return None

    def _keys(self) -> list[str]:
        key, options = self._key_here(), []
        if key is not None:
            options += ["-i", os.fspath(key), "-o", "IdentitiesOnly=yes"]
        if self.login.only_key:
            options += ["-o", "IdentityAgent=none", "-o", "PreferredAuthentications=publickey"]
        if self.login.only_password:
            options += ["-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"]
            options += ["-o", "PreferredAuthentications=keyboard-interactive,password"]
        return options

    def _key_here(self) -> Path | None:
        """A key that a project names may belong to another laptop; then the user's own ways are tried."""
        key = self.destination.private_key
        return key if key is not None and key.exists() else None

    def _no_program(self, error: OSError) -> HoldfastError:
        return HostError(
            f"The program `{self.near.program[0]}` could not be started: {error.strerror}.",
            "Install the OpenSSH client, or name it in HOLDFAST_SSH.",
        )


_ALWAYS = [
    word
    for option in (
        "StrictHostKeyChecking=ask",
        "RemoteCommand=none",
        "PermitLocalCommand=no",
        "ConnectTimeout=15",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=4",
    )
    for word in ("-o", option)
]
"""Whatever the user's configuration says: a new key is confirmed by a person, a link that died is noticed."""

_NO_FORWARDS = ["-o", "ClearAllForwardings=yes"]
"""Ports that the configuration opens belong to the user's own sessions."""


class _Desk:
    """Where the questions of one ssh process arrive, and the variables that lead them there."""

    def __init__(self, host: Ssh, ask: Ask | None) -> None:
        given, near = host.child_environment(), host.near
        self._ask, self._connection = ask, None
        self._opened = threading.Event()
        self._askpass: Askpass | None = None
        self.environment: Mapping[str, str] = given
        if ask is not None and near.runtime is not None:
            self._askpass = Askpass(near.home, near.runtime, self._deliver)
            self.environment = self._askpass.environment(given)

    _connection: Connection | None

    def serve(self, connection: Connection) -> None:
        self._connection = connection
        self._opened.set()

    def close(self) -> None:
        self._opened.set()
        if self._askpass is not None:
            self._askpass.close()

    def _deliver(self, pending: Pending) -> None:
        self._opened.wait()
        if self._connection is not None:
            self._connection.hand_over(Asked(_answering(self._ask, pending)))


def _answering(ask: Ask | None, pending: Pending) -> Callable[[], None]:
    def answer() -> None:
        pending.answer(ask(pending.question) if ask is not None else None)

    return answer
