"""What ssh asks a person: passwords, passphrases, codes, host keys. ssh starts a program for each question
(`askpass.py`); it brings the question here, and the thread that waits for the connection answers it.

So the terminal stays this process's own, Ctrl-C does not reach ssh, and an answer passes through no file, no argument
and no environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import StorageError
from holdfast.farside.system.ownership import make_private
from holdfast.whole_files import write_whole

_FINGERPRINT = r"(?:SHA256|MD5):[A-Za-z0-9+/=:]+"
_HOST = r"host '([^' ]+)(?: \(([^)]*)\))?"
_QUESTION_LIMIT = 1 << 16


class Secret:
    """A password or passphrase on its way to the program that asked for it. Shows as `***`; is never written."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """For the very call that hands it over."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")


class SshQuestion(NamedTuple):
    """`kind` is `password`, `passphrase`, `host-key`, `notice` (nothing to answer: a key wants to be touched) or
    `other` (a code); `fingerprint` and `host` are filled for host keys; `is_repeated`: ssh has asked the same just
    before, so that answer was not accepted."""

    kind: str
    text: str
    fingerprint: str = ""
    host: str = ""
    is_repeated: bool = False


Ask = Callable[[SshQuestion], "str | None"]
"""The answer, or None for none: ssh then goes on as if there were nothing to say. A host key is confirmed by `yes` or
by its fingerprint, which ssh compares itself."""


class Pending(NamedTuple):
    """A question that waits. `answer` must be called once."""

    question: SshQuestion
    answer: Callable[[str | None], None]


class Askpass:
    """Listens for questions of one ssh process. `deliver` is called, in another thread, for each."""

    def __init__(self, home: Path, runtime: Path, deliver: Callable[[Pending], None]) -> None:
        self._deliver = deliver
        self._token = os.urandom(16).hex()
        self._program = _install_program(home)
        self._path: Path | None = None
        if hasattr(socket, "AF_UNIX"):
            _forget_dead(runtime)
            self._listener = socket.socket(socket.AF_UNIX)
            self._path = runtime / f"ask-{os.getpid()}-{os.urandom(4).hex()}"
            self._listener.bind(os.fspath(self._path))
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.listen(8)
        self._is_closed = False
        threading.Thread(target=self._listen, daemon=True).start()

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """`given` with what ssh needs to ask here. DISPLAY is for versions before 8.4, which do not ask without one."""
        place = os.fspath(self._path) if self._path else str(self._listener.getsockname()[1])
        return {
            "DISPLAY": "none",
            **given,
            "SSH_ASKPASS": os.fspath(self._program),
            "SSH_ASKPASS_REQUIRE": "force",
            "HOLDFAST_ASKPASS_SOCKET": place,
            "HOLDFAST_ASKPASS_TOKEN": self._token,
        }

    def close(self) -> None:
        """A repeat changes nothing."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _listen(self) -> None:
        while not self._is_closed:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with link, link.makefile("rb") as reader:
            try:
                asked = json.loads(reader.readline(_QUESTION_LIMIT))
                if asked["token"] != self._token:
                    return
                answered: list[str | None] = []
                done = threading.Event()

                def answer(text: str | None) -> None:
                    answered.append(text)
                    done.set()

                self._deliver(Pending(understand(asked["text"], asked["hint"]), answer))
                while not done.wait(0.5):
                    if self._is_closed:
                        return
                link.sendall(json.dumps(answered[0]).encode() + b"\n")
            except (OSError, ValueError, KeyError, TypeError):
                return  # ssh went away, or it was not ssh


def understand(text: str, hint: str = "") -> SshQuestion:
    """What ssh wants to know, from its words."""
    low = text.lower()
    if hint == "none":
        return SshQuestion("notice", text)
    if "(yes/no" in low or "fingerprint" in low:
        fingerprint, host = re.search(_FINGERPRINT, text), re.search(_HOST, text)
        name = "" if host is None else host[1] if host[2] in (None, host[1]) else f"{host[1]} ({host[2]})"
        return SshQuestion("host-key", text, fingerprint[0] if fingerprint else "", name)
    if "passphrase" in low:
        return SshQuestion("passphrase", text)
    if "password" in low:
        return SshQuestion("password", text)
    return SshQuestion("other", text)


def _forget_dead(runtime: Path) -> None:
    """Sockets of clients that were killed."""
    for path in runtime.glob("ask-*"):
        pid = path.name.split("-")[1]
        if pid.isdigit() and not _is_alive(int(pid)):
            path.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _install_program(home: Path) -> Path:
    """ssh takes the path of one program, so the call of Python with its options stands in a file."""
    script = Path(__file__).with_name("askpass.py")
    python = sys.executable
    if os.name == "nt":
        path, text = home / "askpass.cmd", f'@"{python}" -I -S "{script}" %*\r\n'
    else:
        import shlex

        words = shlex.join([python, "-I", "-S", os.fspath(script)])
        path, text = home / "askpass", f'#!/bin/sh\nexec {words} "$@"\n'
    write_own(path, text, 0o700)
    return path


def write_own(path: Path, text: str, mode: int) -> None:
    """A small file of Holdfast's in its folder here, whole or not at all; one that says this already is left."""
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        make_private(os.fspath(path.parent))
        write_whole(path, text.encode(), mode)
    except OSError as error:
        raise StorageError(
            f"Holdfast's folder `{path.parent}` cannot be written: {error.strerror}.",
            "Set HOLDFAST_HOME to a folder that you may write to, with free space.",
        ) from error
