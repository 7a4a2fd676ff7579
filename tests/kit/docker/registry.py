"""A real image registry on a loopback port, which asks for a password. Docker needs no certificate for loopback."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kit.docker.daemon import Daemon
from kit.waiting import wait_for

USER, PASSWORD = "reader", "open sesame"
_ENTRY = "reader:$2b$04$holdfastholdfastholdfuYnumDRm1MThThD3UX0t6j5a5N7i7Y5G"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_CONFIGURATION = """version: 0.1
log: {{level: info}}
storage:
  filesystem: {{rootdirectory: {folder}/images}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:0", secret: none}}
auth:
  htpasswd: {{realm: images, path: {folder}/htpasswd}}
"""


@dataclass(frozen=True)
class Registry:
    """One registry. `log` says who asked for what."""

    port: int
    log: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def name_of(self, image: str) -> str:
        """The name under which an image of a daemon is pushed and pulled here."""
        return f"{self.address}/{image}"

    def push(self, daemon: Daemon, image: str, folder: Path) -> str:
        """Push an image of the daemon, then remove the new name, so that it can be pulled. `folder` keeps the login
        meanwhile."""
        name = self.name_of(image)
        self.login(daemon, folder)
        daemon.run("tag", image, name)
        daemon.run("--config", str(folder), "push", name)
        daemon.run("rmi", "--no-prune", name)
        return name

    def login(self, daemon: Daemon, folder: Path) -> None:
        """`docker login`, kept in `folder/config.json`: a home's `.docker`, or what DOCKER_CONFIG names."""
        words = ["--config", str(folder), "login", "-u", USER, "--password-stdin", self.address]
        daemon.run(*words, input=PASSWORD)


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """A registry whose files are in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    program = shutil.which("docker-registry", path=_PATH)
    assert program is not None, "needs docker-registry: scripts/system-packages installs it"
    (folder / "htpasswd").write_text(f"{_ENTRY}\n")
    (folder / "config.yml").write_text(_CONFIGURATION.format(folder=folder))
    with (folder / "log").open("wb") as log:
        argv = [program, "serve", str(folder / "config.yml")]
        serving = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": _PATH}, cwd="/")
    try:
        wait_for(lambda: serving.poll() is not None or _port(folder / "log"), what="the registry listens")
        assert serving.poll() is None, (folder / "log").read_text()
        made = Registry(_port(folder / "log"), folder / "log")
        wait_for(lambda: _asks_who(made), what="the registry answers")
        yield made
    finally:
        serving.kill()
        serving.wait()


def _port(log: Path) -> int:
    """The port that it reports; 0 before that."""
    found = re.search(r'"listening on 127\.0\.0\.1:(\d+)"', log.read_text())
    return int(found[1]) if found else 0


def _asks_who(made: Registry) -> bool:
    try:
        urllib.request.urlopen(f"http://{made.address}/v2/", timeout=5).close()
    except urllib.error.HTTPError as error:
        with error:
            return error.code == 401
    except OSError:
        return False
    return True
