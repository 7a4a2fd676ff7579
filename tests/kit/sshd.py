"""A real OpenSSH server on a loopback port, and the files of a client that knows nothing but the tests' servers."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit import processes
from kit.accounts import Account, premises
from kit.waiting import wait_for

__all__ = ["Account", "Client", "Options", "Server", "key_fingerprint", "premises"]

_SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")


@dataclass(frozen=True)
class Options:
    """How a server authenticates users, and what it does with them."""

    password: bool = True
    keys: bool = True
    methods: str = ""
    """`AuthenticationMethods`: `publickey,password` asks for both."""
    max_sessions: int = 10
    force_command: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    banner: str = ""
    pam: bool = False
    kills_at_logout: bool = False
    """The end of a connection ends every process that was started in it, but those with HOLDFAST_TEST_SPARED=1."""
    extra: Sequence[str] = ()
    """Lines of sshd_config; they come first, and in sshd the first one counts."""


class Server:
    """One sshd; it listens on `port` from the start until `stop`."""

    def __init__(self, folder: Path, options: Options = Options()) -> None:  # noqa: B008 - it is frozen
        """`folder` is made and belongs to this server: host key, configuration, log."""
        folder.mkdir(parents=True)
        self.options = options
        self.log = folder / "log"
        self.port = 0
        self._folder = folder
        self._listener: subprocess.Popen[bytes] | None = None
        self.rotate_host_key()
        wait_for(self._start_anywhere, what="sshd found a free port")

    @property
    def host_key(self) -> str:
        """`ssh-ed25519 AAAA…`"""
        return " ".join((self._folder / "host_key.pub").read_text().split()[:2])

    @property
    def fingerprint(self) -> str:
        return key_fingerprint(self._folder / "host_key.pub")

    def start(self) -> None:
        """Listen again on the same port."""
        assert self._start(), self.log.read_text()

    def stop(self, keep_sessions: bool = False) -> None:
        """End the listener and, as a machine that goes down does, every connection; a second stop does nothing.

        `keep_sessions` is what a service manager does when it restarts sshd. Processes of users stay.
        """
        if self._listener is None:
            return
        self._listener.send_signal(signal.SIGSTOP)  # no connection is made while we look
        sessions = [] if keep_sessions else self._sessions()
        self._listener.kill()
        self._listener.wait()
        self._listener = None
        processes.send(sessions, signal.SIGKILL)
        wait_for(lambda: not any(processes.is_alive(one.pid) for one in sessions), what="the sessions are gone")

    def restart(self, keep_sessions: bool = False) -> None:
        self.stop(keep_sessions)
        self.start()

    def rotate_host_key(self) -> None:
        """Make a new host key. New connections see it at once: sshd is restarted when it runs."""
        for name in ("host_key", "host_key.pub"):
            (self._folder / name).unlink(missing_ok=True)
        _make_key(self._folder / "host_key")
        if self._listener is not None:
            self.restart()

    def pause(self) -> None:
        """Answer nothing, neither new connections nor old ones, until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def connections(self) -> int:
        """How many connections are open now."""
        assert self._listener is not None
        return sum(one.parent == self._listener.pid for one in processes.below(self._listener.pid))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_anywhere(self) -> bool:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        return self._start()

    def _start(self) -> bool:
        """Start sshd; False when the port is taken."""
        assert self._listener is None
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # a system that starts sshd itself has made it
        (self._folder / "banner").write_text(self.options.banner)
        config = self._folder / "config"
        config.write_text(_configuration(self.options, self._folder, self.port))
        program = [_sshd(), "-e", "-f", str(config)]
        argv = [*program, "-D"]
        if self.options.kills_at_logout:
            argv = [sys.executable, "-I", str(Path(__file__).with_name("logout.py")), str(self.port), *program, "-i"]
        # In append mode every writer adds at the end; what an earlier start said does not count.
        with self.log.open("ab") as log:
            before = log.tell()
            self._listener = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": "/usr/bin:/bin"}, cwd="/"
            )
        wait_for(lambda: self._said("Server listening on", before) or self._has_ended(), what="sshd listens")
        if not self._has_ended():
            return True
        self._listener = None
        said = self.log.read_bytes()[before:].decode(errors="replace")
        assert "in use" in said or "Cannot bind" in said, said
        return False

    def _said(self, text: str, since: int) -> bool:
        return text.encode() in self.log.read_bytes()[since:]

    def _has_ended(self) -> bool:
        return self._listener is None or self._listener.poll() is not None

    def _sessions(self) -> list[processes.Process]:
        """The processes that carry connections, without those that people run in them."""
        assert self._listener is not None
        return [
            one
            for one in processes.below(self._listener.pid)
            if one.parent == self._listener.pid or Path(one.program).name in ("sshd", "sshd-session")
        ]

    def _signal(self, number: signal.Signals) -> None:
        assert self._listener is not None
        self._listener.send_signal(number)
        processes.send(self._sessions(), number)


@dataclass(frozen=True)
class Alias:
    """One `Host` of an ssh configuration."""

    name: str
    port: int
    user: str = ""
    key: Path | None = None
    jump: str = ""


class Client:
    """The near side: an ssh configuration of its own, because ssh reads the account's real one whatever HOME says."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.folder = folder
        self.config = folder / "config"
        self.known_hosts = folder / "known_hosts"
        self._aliases: dict[str, Alias] = {}
        self._write()

    @property
    def ssh(self) -> list[str]:
        """The program with which this client connects."""
        return ["ssh", "-F", str(self.config)]

    @property
    def environment(self) -> dict[str, str]:
        return {"HOLDFAST_SSH": shlex.join(self.ssh)}

    def know(self, alias: Alias) -> None:
        """Make `alias.name` a name that ssh can be given; a second one of that name replaces it."""
        self._aliases[alias.name] = alias
        self._write()

    def trust(self, server: Server, port: int | None = None) -> None:
        """Put the server's current host key into known_hosts, for `port` if a link leads to it."""
        with self.known_hosts.open("a") as file:
            file.write(f"[127.0.0.1]:{port or server.port} {server.host_key}\n")

    def make_key(self, name: str = "key", passphrase: str = "") -> Path:
        """Make a new key pair and return the path of the private key. `authorize` of an account takes the text of the
        `.pub`."""
        path = self.folder / name
        _make_key(path, passphrase)
        return path

    def askpass(self, *answers: str) -> dict[str, str]:
        """Variables that make ssh take its answers, one per prompt, from a script; the last one repeats."""
        script = self.folder / "askpass"
        left = self.folder / "answers"
        left.write_text("".join(f"{answer}\n" for answer in answers))
        script.write_text(f"#!/bin/sh\nhead -n 1 {left}\n[ $(wc -l < {left}) -gt 1 ] && sed -i 1d {left}\nexit 0\n")
        script.chmod(0o700)
        return {"SSH_ASKPASS": str(script), "SSH_ASKPASS_REQUIRE": "force"}

    def run(self, alias: str, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Plain ssh to `alias`; the words before a `--` are options of ssh."""
        cut = words.index("--") if "--" in words else 0
        flags, command = words[:cut], words[cut + 1 :] if "--" in words else words
        environment = {**os.environ, **options.pop("env", {})}
        settings = {"stdin": subprocess.DEVNULL, "timeout": 60, **options}
        if "input" in options:
            del settings["stdin"]
        return subprocess.run(
            [*self.ssh, *flags, alias, *command], env=environment, capture_output=True, text=True, **settings
        )

    def _write(self) -> None:
        blocks = [_host_block(alias) for alias in self._aliases.values()]
        blocks.append(
            "Host *\n"
            f"    UserKnownHostsFile {self.known_hosts}\n"
            "    GlobalKnownHostsFile /dev/null\n"
            "    IdentityAgent none\n"
            "    IdentityFile none\n"
            "    IdentitiesOnly yes\n"
            "    UpdateHostKeys no\n"
            "    KexAlgorithms curve25519-sha256\n"  # the default takes 0.1 s of two cores, at every login
        )
        self.config.write_text("\n".join(blocks))


def key_fingerprint(path: Path) -> str:
    """`SHA256:…` of a public key."""
    shown = subprocess.run(["ssh-keygen", "-lf", str(path)], capture_output=True, text=True, check=True)
    return shown.stdout.split()[1]


def _configuration(options: Options, folder: Path, port: int) -> str:
    sftp = next((path for path in _SFTP_SERVERS if Path(path).exists()), "internal-sftp")
    lines = [
        *options.extra,
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {folder / 'host_key'}",
        "PidFile none",
        "LogLevel VERBOSE",
        "PrintMotd no",
        "UseDNS no",
        "MaxStartups 100",
        f"PasswordAuthentication {_yes(options.password)}",
        f"PubkeyAuthentication {_yes(options.keys)}",
        "KbdInteractiveAuthentication no",
        f"UsePAM {_yes(options.pam)}",
        f"MaxSessions {options.max_sessions}",
        f"Subsystem sftp {sftp}",
    ]
    if options.methods:
        lines.append(f"AuthenticationMethods {options.methods}")
    if options.force_command:
        lines.append(f"ForceCommand {options.force_command}")
    if options.environment:  # one line: sshd reads only the first of several
        lines.append("SetEnv " + " ".join(f'"{name}={value}"' for name, value in options.environment.items()))
    if options.banner:
        lines.append(f"Banner {folder / 'banner'}")
    return "\n".join(lines) + "\n"


def _host_block(alias: Alias) -> str:
    lines = [f"Host {alias.name}", "    HostName 127.0.0.1", f"    Port {alias.port}"]
    if alias.user:
        lines.append(f"    User {alias.user}")
    if alias.key is not None:
        lines.append(f"    IdentityFile {alias.key}")
    if alias.jump:
        lines.append(f"    ProxyJump {alias.jump}")
    return "\n".join(lines) + "\n"


def _sshd() -> str:
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/sbin")
    assert program is not None, "needs sshd: scripts/system-packages installs it"
    return program


def _make_key(path: Path, passphrase: str = "") -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "kit", "-f", str(path)], check=True)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
