"""A Linux machine reached by the system's own `ssh`, so that ~/.ssh/config, agents, jump hosts, second factors and
hardware keys work as they do by hand. Host keys are checked by ssh; nothing here turns that off."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, HostError, LoginNeeded
from holdfast.farside.system.digests import sha256
from holdfast.frozen import dataclass, field, replace
from holdfast.hosts import shared_connection
from holdfast.hosts.bootstrap import DEFAULT_HOME, archive, for_any_shell, remote_line
from holdfast.hosts.connection import Asked, Carrier, Connection, RemoteLink, new_nonce
from holdfast.hosts.far_end import Said
from holdfast.hosts.shipment import far_side
from holdfast.hosts.ssh_errors import SshAddress, explain, refused, silent
from holdfast.shown_text import pasted

if TYPE_CHECKING:  # loaded where the user may be asked
    from holdfast.hosts.ssh_questions import Ask, Askpass, Pending

SHARED_PATIENCE = 6.0
"""Seconds until a session over an open connection must have spoken; then a new connection is made beside it."""
QUIET_PATIENCE = 25.0
"""Seconds for a whole login when the user may not be asked."""
_ASKED_PATIENCE = 120.0
"""Seconds without a word or a question when the user may be asked: a second factor may be a telephone to be found."""
_CONFIGURATION_PATIENCE = 10.0
"""Seconds: a configuration may run programs (`Match exec`)."""
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
        return "ssh " + (f"-p {self.port} " if self.port else "") + pasted(f"{user}{self.address}")


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
    answers questions (None: they are not asked)."""

    home: Path
    environment: Mapping[str, str]
    runtime: Path | None
    program: tuple[str, ...] = ("ssh",)
    ask: Ask | None = None


@dataclass(frozen=True)
class _Way:
    """Options for ssh; `is_open`: over a connection that is there already."""

    options: Sequence[str]
    is_open: bool = False


@dataclass(frozen=True)
class Ssh:
    """`home` is Holdfast's folder on the host; `~` in it is the account's."""

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
        far, nonce = far_side(self.near.home), new_nonce()
        line = remote_line(far, self.home, nonce)
        ask = self.near.ask if may_ask else None
        desk = _Desk(self, ask)
        ways = self._ways()
        options = ["-T", *_NO_FORWARDS, *_NO_FORWARDED_KEYS, *(["-o", "BatchMode=yes"] if ask is None else [])]
        calls = [self.argv([line], options, way.options) for way in ways]
        where = self._where()
        whole = _ASKED_PATIENCE if ask else QUIET_PATIENCE
        remote = RemoteLink(
            others=calls[1:],
            patience=[SHARED_PATIENCE if way.is_open else whole for way in ways],
            supply=lambda: archive(far),
            explain=self._explain,
            refuse=lambda word, rest: refused(where, word, rest),
            silent=lambda seconds: silent(where, seconds),
            closed=desk.close,
        )
        try:
            connection = Connection(calls[0], nonce, desk.environment, remote)
        except OSError as error:
            desk.close()
            raise HostError(
                f"The program `{self.near.program[0]}` could not be started: {error.strerror}.",
                "Install the OpenSSH client, or name it in HOLDFAST_SSH.",
            ) from error
        desk.serve(connection)
        return connection

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        line = " ".join(for_any_shell(word) for word in words)
        return self.argv([line], ["-t", "-q", *_NO_FORWARDS, *_NO_FORWARDED_KEYS])

    def carrier(self, port: int) -> Carrier:
        """On a connection of its own: a shared one would keep the port open after the end."""
        alone = self.alone()

        def argv(here: int) -> list[str]:
            forwards = ["-L", f"127.0.0.1:{here}:127.0.0.1:{port}"]
            return alone.argv([], ["-N", "-o", "ExitOnForwardFailure=yes", *_NO_FORWARDED_KEYS, *forwards])

        return Carrier(argv, self.child_environment(), self._explain)

    def alone(self) -> Ssh:
        return replace(self, login=replace(self.login, shares=False))

    def argv(self, remote: Sequence[str], options: Sequence[str], sharing: Sequence[str] | None = None) -> list[str]:
        """The command line for ssh. `remote` is what the shell of the host will read; `sharing` None: the first of the
        ways that `connect` would go."""
        ways = self._ways()[0].options if sharing is None else sharing
        target = self.destination.address
        return [*self.near.program, *options, *_ALWAYS, *ways, *self._keys(), *self._place(), "--", target, *remote]

    def settings(self) -> dict[str, str]:
        """What ssh itself makes of the destination (`ssh -G`), by names in lower case; empty where it does not say."""
        command = [*self.near.program, "-G", *self._place(), "--", self.destination.address]
        try:
            said = subprocess.run(
                command,
                env=self.child_environment(),
                capture_output=True,
                timeout=_CONFIGURATION_PATIENCE,
                stdin=subprocess.DEVNULL,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return {}
        lines = [line.partition(" ") for line in os.fsdecode(said.stdout).splitlines()]
        return {key: value for key, _, value in lines}

    def child_environment(self) -> dict[str, str]:
        """The variables for ssh, without secrets of Holdfast."""
        return {name: value for name, value in self.near.environment.items() if name not in _NEVER_FOR_CHILDREN}

    def _place(self) -> list[str]:
        port, user = self.destination.port, self.destination.username
        return [*(["-p", str(port)] if port else []), *(["-l", user] if user else [])]

    def _ways(self) -> list[_Way]:
        """How to get there, best first; where the first may be stuck, one that shares nothing follows."""
        if not self.login.shares:
            return [self._alone(self._settings())]
        identity = [*self.near.program, self.name, str(self._key_here() or "")]
        own = shared_connection.own_socket(self.near.runtime, identity)
        if own is not None and own.exists():
            if shared_connection.answers(own):
                return [_Way(shared_connection.own_options(own), is_open=True), self._alone({})]
            own.unlink(missing_ok=True)  # its master is dead or stuck: a new one takes the place
        settings = self._settings()
        users = Path(os.path.expanduser(settings.get("controlpath", "none")))
        if users.name != "none" and os.path.exists(users) and shared_connection.answers(users):
            return [_Way([], is_open=True), self._alone(settings)]
        if own is None:
            return [self._alone(settings)]
        jumps = self._checked_jumps(settings)
        shared = _Way([*jumps, *shared_connection.own_options(own)])
        # One that is to stay open keeps quiet about what a jump host said; one that is not tells the reason.
        return [shared, self._alone(settings)] if jumps else [shared]

    def _alone(self, settings: Mapping[str, str]) -> _Way:
        return _Way([*self._checked_jumps(settings), *shared_connection.NO_SHARING])

    def _settings(self) -> dict[str, str]:
        """What ssh would do, by its own words, where that may be of interest."""
        return self.settings() if self._configuration_matters() else {}

    def _configuration_matters(self) -> bool:
        """Whether some file of ssh's configuration may say anything about sharing or jumping: else it need not be
        asked, which takes a process."""
        words = self.near.program
        if any(word.startswith(("-J", "-o")) for word in words):
            return True
        if "-F" in words[:-1]:
            files = [Path(words[words.index("-F") + 1])]
        elif hasattr(os, "getuid"):
            import pwd

            files = [Path(pwd.getpwuid(os.getuid()).pw_dir, ".ssh", "config"), *Path("/etc/ssh/ssh_config.d").glob("*")]
            files.append(Path("/etc/ssh/ssh_config"))
        else:
            return True
        try:
            texts = [file.read_text(errors="replace").lower() for file in files if file.exists()]
        except OSError:
            return True
        others = [text.replace("include /etc/ssh/ssh_config.d/*.conf", "") for text in texts]
        return any(word in text for text in others for word in ("controlpath", "proxyjump", "include"))

    def _checked_jumps(self, settings: Mapping[str, str]) -> list[str]:
        """Options are for the last host only; a file of configuration is also read for the hosts on the way, so that
        their keys are checked whatever the user's own says. Where one was needed once it is used from then on, also
        when ssh was not asked what it would do."""
        words = self.near.program
        own = [words[words.index("-F") + 1]] if "-F" in words[:-1] else ["~/.ssh/config", "/etc/ssh/ssh_config"]
        text = "StrictHostKeyChecking ask\n" + "".join(f'Include "{each}"\n' for each in own)
        path = self.near.home / f"ssh-{sha256(text.encode()).hexdigest()[:8]}.config"
        if not path.exists():
            if settings.get("proxyjump", "none") == "none":
                return []
            from holdfast.hosts.ssh_questions import write_own

            write_own(path, text, 0o600)
        return ["-F", os.fspath(path)]

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
        """None if the key that a project names is not here: it may belong to another laptop. Then ssh uses its own."""
        key = self.destination.private_key
        return key if key is not None and os.path.exists(key) else None

    def _where(self) -> SshAddress:
        return SshAddress(self.name, self.destination.by_hand())

    def _explain(self, said: Said) -> HoldfastError:
        """A project that was copied here names a key of the laptop where its target was attached."""
        error, key = explain(self._where(), said), self.destination.private_key
        if not isinstance(error, LoginNeeded) or key is None or os.path.exists(key):
            return error
        return LoginNeeded(
            f"{error.message} The key `{key}`, which the target's file names, is not on this machine.",
            "To give this machine a key of its own there, attach it here too, with the same name and address: "
            "holdfast computetarget attach remote",
            error.methods,
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

_NO_FORWARDED_KEYS = ["-a", "-x", "-k"]
"""Nor does the box get the use of the user's keys, display and Kerberos tickets: its administrator could take it."""


class _Desk:
    """Where the questions of one ssh process arrive, and the variables that lead them there."""

    def __init__(self, host: Ssh, ask: Ask | None) -> None:
        near = host.near
        self._ask, self._asked = ask, ""
        self._connection: Connection | None = None
        self._opened = threading.Event()
        self._askpass: Askpass | None = None
        self.environment = host.child_environment()
        if ask is None:
            return
        if near.runtime is None:
            raise HostError(
                "There is no folder of your own for sockets, so ssh could not ask you anything.",
                "Set XDG_RUNTIME_DIR to a folder that only you can enter, with a short path.",
            )
        from holdfast.hosts.ssh_questions import Askpass

        self._askpass = Askpass(near.home, near.runtime, self._deliver)
        self.environment = self._askpass.environment(self.environment)

    def serve(self, connection: Connection) -> None:
        self._connection = connection
        self._opened.set()

    def close(self) -> None:
        self._opened.set()
        if self._askpass is not None:
            self._askpass.close()

    def _deliver(self, pending: Pending) -> None:
        self._opened.wait()
        text, ask = pending.question.text, self._ask
        question = pending.question._replace(is_repeated=text == self._asked)
        self._asked = text
        if self._connection is not None:
            self._connection.hand_over(Asked(lambda: pending.answer(ask(question) if ask is not None else None)))
