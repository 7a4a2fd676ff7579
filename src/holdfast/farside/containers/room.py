"""A container in which an environment is built: one for a whole preparation, which ends when no process holds it.

Commands go in by `docker exec`. Their variables, and secrets among them, are the first line of what they read: nothing
of that stands in an argument, in `docker inspect` or in a file.
"""

import os
import re
import stat
import time
from typing import Any, Dict, Iterable, List, Optional, Sequence
from urllib.parse import unquote

from holdfast.farside.containers import docker_options
from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.docker_errors import NAME_TAKEN, NO_ROOM, explain
from holdfast.farside.containers.image_probe import SHELL, common_words
from holdfast.farside.containers.images import Image
from holdfast.farside.containers.outfit import PROXIES
from holdfast.farside.containers.removal import ROOM_FIFO
from holdfast.farside.environments.workshop import Result, Room, Start
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.files import names_in
from holdfast.farside.system.layout import BUILD, SHIPPED, Home
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.refusal import Refused

PATIENCE = 120.0
SETTLING = 1.0
KILLED = 128 + 9
FIFO = ROOM_FIFO
_STAY = 'exec 3<>"$1" 4<"$1" 3>&- && read gone <&4'
"""Opened for writing too, as a pipe that no process holds would else never be open."""
_ENTER = 'IFS= read -r given && eval "$(printf %b "$given")" && exec "$@" 2>&1'
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NAMED = re.compile(r"\$\{([A-Za-z0-9_]+)\}")
_PLAIN = re.compile(r"[\\\x00-\x1f\x7f-\U0010ffff]")
_WORD = re.compile(r"[\s,=]+")
_PASSED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_OF_THE_MACHINE = ("UV_PYTHON", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_PROJECT", "UV_WORKING_DIR", "UV_ENV_FILE")
"""Settings of uv's that name things which are somewhere else in a container, or are not there."""
_WRITTEN, _READ = ("environments", "cache", "pythons"), ("tools",)
"""Of the home, what a build writes to, and what it only reads."""
_HOME = "home"
_SYSTEM = re.compile(r"/(?:bin|boot|dev|etc|home|lib\w*|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)?/*\Z")


class RoomContainer(Room):
    """`folder` is the run's. Entered as a block; the container is made when the first command is run."""

    def __init__(
        self, docker: DockerClient, image: Image, wanted: docker_options.WantedContainer, home: Home, folder: str
    ) -> None:
        self._docker, self._image, self._wanted, self._home = docker, image, wanted, home
        self._folder, self._fifo = folder, os.path.join(folder, FIFO)
        self._name = wanted.name + "-room"
        self._held = -1
        self._is_made = False
        self._files: Dict[str, bool] = {}
        self._named: List[str] = []

    def __enter__(self) -> "RoomContainer":
        return self

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> None:
        if kind is None:
            self._let_go()
        else:
            self.abandon()

    def passes(self, inherited: Dict[str, str]) -> Dict[str, str]:
        """What is about packages and the way to them; all else is the image's own."""
        return {name: value for name, value in inherited.items() if _is_passed(name) or name in self._named}

    def reach(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._named += _NAMED.findall(text)
            for word in _WORD.split(text):
                path = unquote(word[len("file://") :]) if word.startswith("file://") else word
                path = os.path.dirname(path.rstrip("/")) if path.rstrip("/").endswith("/simple") else path
                if os.path.isabs(path) and os.path.exists(path) and not _SYSTEM.match(path):
                    self._files[os.path.normpath(path)] = False  # of an index also what its pages lead to
        self._files.update(_settings_files(inherited_environment()))

    def start(self, argv: List[str], variables: Dict[str, str], given: Optional[bytes]) -> Start:
        self._open()
        words = ["exec", "-i", "--workdir", self._home.path, self._name, SHELL, "-c", _ENTER, "holdfast"] + argv
        line = header(dict(variables, **self._own()), self._hindering())
        return Start(self._docker.argv(words), self._docker.environment, "/", line + (given or b""))

    def ended(self, result: Result) -> Result:
        code = result.code
        if code is None or code == 0:
            return result
        if self._is_gone(code):
            message = "the container in which it was built is gone: it or Docker itself was stopped or removed"
            raise Refused("preparation", message + ". Submit again.")
        return Result(None, result.output, code - 128) if 128 < code < 160 else result

    def abandon(self) -> None:
        """Everything in it is gone when this returns, also if no process attends any more."""
        self._let_go()
        if self._is_made:
            self._is_made = False
            self._docker.attended_by(None).call(["rm", "-f", self._name], PATIENCE)

    def _let_go(self) -> None:
        """It ends by itself, and is removed by the daemon, when no process holds the pipe."""
        if self._held >= 0:
            os.unlink(self._fifo)
            os.close(self._held)
            self._held = -1

    def _open(self) -> None:
        if self._held >= 0:
            return
        if os.path.lexists(self._fifo):
            os.unlink(self._fifo)
        os.mkfifo(self._fifo, 0o600)
        self._held = os.open(self._fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        make_private(self._own_home())
        make_private(os.path.join(self._folder, BUILD))
        self._is_made = True  # or may be, when a call ends early
        answer = self._docker.call(self._words(), PATIENCE)
        if not answer.is_good:
            refusal = explain(answer)
            self._is_made = refusal.kind != NAME_TAKEN  # that one is not ours to remove
            kind = "storage" if refusal.kind == NO_ROOM else "preparation"
            hint = refusal.hint.replace("the compute target", self._wanted.file)
            raise Refused(kind, ("%s %s" % (refusal.message, hint)).strip())

    def _words(self) -> List[str]:
        words = ["run", "-d", "--rm", "--name", self._name, "--network", network(self._wanted.options)]
        words += common_words(self._docker, self._home)
        for name, value in self._wanted.labels:
            words += ["--label", "%s=%s" % (name, value)]
        for path in self._hidden():
            _let_through(path, self._mounted())
            words += docker_options.hidden(path) if os.path.isdir(path) else _covered(path)
        for path, is_writable in sorted(self._mounted().items()):
            words += docker_options.mount(path, path, is_writable)
        return words + ["--entrypoint", SHELL, self._image.id, "-c", _STAY, "holdfast", self._fifo]

    def _hidden(self) -> List[str]:
        """What else lies in the home: runs, the far side itself, keys of other machines."""
        shown = set(_WRITTEN + _READ)
        paths = [os.path.join(root, name) for root in self._homes() for name in names_in(root) if name not in shown]
        return [path for path in paths if not (os.path.islink(path) or _is_passing(path))]

    def _mounted(self) -> Dict[str, bool]:
        """The home as one piece: files of the cache and of an environment can be the same only within one mount. What
        is hidden of it and needed after all is mounted once more."""
        found: Dict[str, bool] = dict.fromkeys(self._homes(), True)
        for path in [os.path.join(root, name) for root in self._homes() for name in _WRITTEN + _READ]:
            is_written = os.path.basename(path) in _WRITTEN
            if os.path.exists(path) and (os.path.islink(path) or not is_written):
                found[real_path(path) if os.path.islink(path) else path] = is_written
        for name in ("work", BUILD, FIFO):
            for path in {os.path.join(self._folder, name), os.path.join(real_path(self._folder), name)}:
                if os.path.exists(path):
                    found[path] = True
        found.setdefault(SHIPPED, False)
        written = [os.path.join(root, name) for root in self._homes() for name in _WRITTEN]
        for path, is_writable in self._files.items():
            if not _is_below(path, written):
                found.setdefault(path, is_writable)
        return found

    def _homes(self) -> List[str]:
        """By both of its names, if it has two."""
        return sorted({self._home.path, real_path(self._home.path)})

    def _own_home(self) -> str:
        """Not that of scripts in containers, who could put settings for installers there."""
        return os.path.join(self._home.cache(), _HOME)

    def _own(self) -> Dict[str, str]:
        """Where the installer finds the machine's settings, and a home that it may write to."""
        home, inherited = self._own_home(), inherited_environment()
        own = {"HOME": home, "XDG_CONFIG_HOME": os.path.join(home, ".config")}
        if os.path.isfile(os.path.join(_config(inherited), "uv", "uv.toml")):
            own["XDG_CONFIG_HOME"] = _config(inherited)
        if os.path.isfile(_netrc(inherited)):
            own["NETRC"] = _netrc(inherited)
        if os.path.isdir(_credentials(inherited)):
            own["UV_CREDENTIALS_DIR"] = _credentials(inherited)
        return own

    def _hindering(self) -> List[str]:
        """Variables of the image that change what the installer does."""
        return sorted(
            name for name in self._image.environment if name.startswith(("UV_", "PIP_", "XDG_", "VIRTUAL_ENV"))
        )

    def _is_gone(self, code: int) -> bool:
        """Of one that is being ended, Docker may say for a moment longer that it runs than of what was killed in it."""
        deadline = time.monotonic() + SETTLING
        while self._is_there():
            if code != KILLED or time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _is_there(self) -> bool:
        answer = self._docker.call(["inspect", "--format", "{{.State.Running}}", self._name], PATIENCE)
        return answer.is_good and answer.output.strip() == "true"


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _is_passing(path: str) -> bool:
    """It may be gone before the container is made, and Docker would make it anew, as root."""
    return os.path.basename(path).startswith(Home.PASSING)


def _let_through(path: str, mounted: Iterable[str]) -> None:
    """What is mounted below a hidden folder is reached through the empty one in its place. That is root's, and Docker
    gives it the mode of the folder: others may go through, and still not see what is in it."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not mode & stat.S_IXOTH and any(each.startswith(path + os.sep) for each in mounted):
        os.chmod(path, mode | stat.S_IXGRP | stat.S_IXOTH)  # noqa: S103 - to go through, not to read or write


def _covered(path: str) -> List[str]:
    return docker_options.mount(os.devnull, path, False)


def header(variables: Dict[str, str], unset: Sequence[str]) -> bytes:
    """One line that a shell makes its variables of. What is not plain is written in octal."""
    commands = ["unset %s" % " ".join(name for name in unset if _NAME.match(name))] if unset else []
    for name, value in sorted(variables.items()):
        if _NAME.match(name):
            commands.append("export %s='%s'" % (name, value.replace("'", "'\\''")))
    text = "; ".join(commands + [":"])
    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return (_PLAIN.sub(lambda found: "\\0%03o" % ord(found.group()), raw) + "\n").encode("ascii")


def network(words: Sequence[str]) -> str:
    """The target's; a build needs one also where the script gets none."""
    found = "host"
    for place, word in enumerate(words):
        if word in ("--network", "--net") and place + 1 < len(words):
            found = words[place + 1]
        elif word.startswith(("--network=", "--net=")):
            found = word.partition("=")[2]
    return "host" if found == "none" else found


def _is_passed(name: str) -> bool:
    if name.startswith("UV_"):
        return name not in _OF_THE_MACHINE
    return name.startswith("PIP_") or name in _PASSED or name.lower() in PROXIES


def _settings_files(environment: Dict[str, str]) -> Dict[str, bool]:
    """Files of the machine that installers read by themselves, and whether they write to them."""
    named = [os.path.join(_config(environment), "uv", "uv.toml"), "/etc/uv/uv.toml", _netrc(environment)]
    found = {path: False for path in named if os.path.isfile(path)}
    if os.path.isdir(_credentials(environment)):
        found[_credentials(environment)] = True
    return found


def _config(environment: Dict[str, str]) -> str:
    return environment.get("XDG_CONFIG_HOME") or os.path.join(_account(environment), ".config")


def _netrc(environment: Dict[str, str]) -> str:
    return environment.get("NETRC") or os.path.join(_account(environment), ".netrc")


def _credentials(environment: Dict[str, str]) -> str:
    """Where `uv auth login` keeps what it was told."""
    data = environment.get("XDG_DATA_HOME") or os.path.join(_account(environment), ".local", "share")
    return os.path.join(data, "uv", "credentials")


def _account(environment: Dict[str, str]) -> str:
    return environment.get("HOME") or os.path.expanduser("~")
