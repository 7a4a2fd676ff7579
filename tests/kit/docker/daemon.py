"""One private dockerd: own data, own socket, own bridge, own containerd, no trace in the machine's packet filter.

A daemon is known by its folder. Any process can find it there, so the workers of a session share it, and a later
session ends what a killed one left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import grp
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit import processes
from kit.accounts import administer
from kit.docker import bridges
from kit.docker.gpu_hook import GPUS, HOOK
from kit.waiting import wait_for

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "docker"
GROUP = "docker"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Settings:
    """How a daemon is started."""

    hook: bool = True
    """NVIDIA's hook is installed, so that `--gpus` works."""
    live_restore: bool = False
    root: str = ""
    """Where images and containers are kept; if empty, below the cache."""
    extra: tuple[str, ...] = ()
    """More arguments for dockerd."""


@dataclass(frozen=True)
class Daemon:
    """One dockerd. `folder` holds socket, pid file, log and the hook; `root` its data."""

    folder: Path
    root: Path
    bridge: str
    settings: Settings

    @staticmethod
    def create(folder: Path, settings: Settings, template: Path | None) -> Daemon:
        """Make one that does not run yet, in an empty folder, with the images of `template`."""
        root = Path(settings.root) if settings.root else CACHE / "roots" / folder.name
        root.mkdir(parents=True, mode=0o711, exist_ok=True)
        made = Daemon(folder, root, bridges.create(), settings)
        description = dataclasses.asdict(made) | {"folder": str(folder), "root": str(root)}
        _write_whole(folder / "daemon.json", json.dumps(description))
        if template is not None:
            clone(template, root)
        if settings.hook:
            _install_hook(folder)
        try:
            grp.getgrnam(GROUP)
        except KeyError:
            administer(["groupadd", "--system", GROUP], fine=9)
        return made

    @staticmethod
    def at(folder: Path) -> Daemon:
        """The daemon that another process made there."""
        text = json.loads((folder / "daemon.json").read_text())
        settings = Settings(**{**text["settings"], "extra": tuple(text["settings"]["extra"])})
        return Daemon(folder, Path(text["root"]), text["bridge"], settings)

    @property
    def socket(self) -> Path:
        return self.folder / "docker.sock"

    @property
    def host(self) -> str:
        """What DOCKER_HOST is set to."""
        return f"unix://{self.socket}"

    @property
    def environment(self) -> dict[str, str]:
        return {"DOCKER_HOST": self.host}

    @property
    def gateway(self) -> str:
        """The address of this machine, as containers on the bridge see it."""
        return bridges.address(self.bridge)

    @property
    def gpus(self) -> Path:
        """Where the hook looks up which simulated GPUs a container is given."""
        return self.folder / GPUS

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def pid(self) -> int:
        """0 when it does not run."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.folder / "pid").read_text())
            if str(self.folder) in " ".join(_argv(pid)):
                return pid
        return 0

    def answers(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(self.socket))
            connection.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in connection.recv(64)
        return False

    def run(self, *words: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        """`docker WORDS`; a failed command is an AssertionError with its output, unless `check` is false."""
        environment = {**os.environ, **self.environment, **options.pop("env", {})}
        settings = {"stdin": subprocess.DEVNULL, "timeout": 120, **options}
        if "input" in options:
            del settings["stdin"]
        done = subprocess.run(["docker", *words], env=environment, capture_output=True, text=True, **settings)
        assert not check or done.returncode == 0, f"docker {' '.join(words)}: {done.stdout}{done.stderr}"
        return done

    def containers(self, *words: str, every: bool = True) -> list[str]:
        """The names of its containers, including ended ones unless `every` is false; `words` filter."""
        return self.run("ps", *(["-a"] if every else []), "--format", "{{.Names}}", *words).stdout.split()

    def images(self) -> list[str]:
        return self.run("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()

    def inspect(self, name: str) -> dict[str, Any]:
        """What `docker inspect` says of a container or an image."""
        (found,) = json.loads(self.run("inspect", name).stdout)
        assert isinstance(found, dict)
        return found

    def start(self) -> None:
        """Start it, unless it runs; returns when it answers."""
        with self.log.open("ab") as log:
            before = log.tell()
            if not self.pid:  # a daemon that answers slowly does not need a second one
                # Not a child of ours: it may outlive the worker that starts it.
                argv = ["setsid", "--fork", _program(), *self._words()]
                subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._variables(), cwd="/")

        def ready() -> bool:
            said = self.log.read_bytes()[before:].decode(errors="replace")
            assert "failed to start" not in said, said
            return self.answers()

        wait_for(ready, seconds=60, what=f"dockerd answers: {self.log}")

    def stop(self) -> None:
        """End it as a service manager does: containers are stopped too, unless live-restore is on."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, and its containerd with it, as the engine has it. Containers go on."""
        containerd = self.folder / "exec" / "containerd" / "containerd.pid"
        pid = int(containerd.read_text())
        self._end(signal.SIGKILL)
        wait_for(lambda: not processes.is_alive(pid), what="containerd has ended")
        for noted in (self.folder / "pid", containerd):
            noted.unlink()  # dockerd takes a zombie for a running process

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove_containers(self) -> None:
        found = self.run("ps", "-aq").stdout.split()
        if found:
            self.run("rm", "-f", "-v", *found)

    def close(self) -> None:
        """End it with everything that it has started, and remove files and bridge. A second time does nothing."""
        if not self.folder.exists():
            return
        if self.pid and self.answers():
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                self.remove_containers()
            self.stop()
        self._end(signal.SIGKILL)
        wait_for(self._nothing_runs, what=f"nothing of {self.folder} runs")
        _unmount(self.folder)
        _unmount(self.root)
        shutil.rmtree(self.root, ignore_errors=bool(self.settings.root))
        bridges.remove(self.bridge)
        shutil.rmtree(self.folder)

    def _words(self) -> list[str]:
        words = [
            *("--data-root", str(self.root)),
            *("--exec-root", str(self.folder / "exec")),
            *("--pidfile", str(self.folder / "pid")),
            *("--host", self.host),
            *("--group", GROUP),
            *("--config-file", str(self.folder / "daemon-config.json")),
            *("--bridge", self.bridge),
            *("--exec-opt", "native.cgroupdriver=cgroupfs"),
            *("--storage-driver", "overlay2"),
            "--iptables=false",  # the rules of the machine and of its own daemon stay as they are
            "--ip6tables=false",
            "--ip-forward=false",
            "--ip-masq=false",
        ]
        if self.settings.live_restore:
            words.append("--live-restore")
        return [*words, *self.settings.extra]

    def _variables(self) -> dict[str, str]:
        (self.folder / "daemon-config.json").write_text("{}")
        own = [str(self.folder / "bin")] if self.settings.hook else []
        return {"PATH": ":".join([*own, _SYSTEM_PATH]), "HOME": str(self.folder), "TMPDIR": str(self.folder)}

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid
        if not pid:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        wait_for(lambda: not processes.is_alive(pid), seconds=60, what="dockerd has ended")

    def _nothing_runs(self) -> bool:
        """Kills them too: one may have been started since the last look."""
        left = list(self._left())
        processes.send(left, signal.SIGKILL)
        return not left

    def _left(self) -> Iterator[processes.Process]:
        """containerd, its shims, what runs in containers, and every other process that names our folder in its first
        arguments."""
        for one in processes.every():
            # A shim's containers are its children: they would survive without it.
            is_engine = Path(one.program).name.startswith(("containerd", "docker", "runc"))
            if one.is_alive and is_engine and str(self.folder) in " ".join(one.argv):
                yield from processes.below(one.pid)
                yield one


def clone(template: Path, root: Path) -> None:
    """Give a data root the images of another one that no daemon uses, without copying. This works because the engine
    never changes a layer's files, and replaces its lists instead of editing them."""
    for part in ("image", "overlay2"):
        linked = subprocess.run(["cp", "-al", template / part, root / part], capture_output=True, text=True)
        if linked.returncode:  # another file system
            shutil.rmtree(root / part, ignore_errors=True)
            subprocess.run(["cp", "-a", template / part, root / part], check=True)


def _install_hook(folder: Path) -> None:
    path = folder / "bin" / HOOK
    path.parent.mkdir()
    text = Path(__file__).with_name("gpu_hook.py").read_text()
    path.write_text(f"#!/usr/bin/python3 -IS\n{text}\nif __name__ == '__main__':\n    main({str(folder / GPUS)!r})\n")
    path.chmod(0o755)
    (folder / GPUS).mkdir()


def _program() -> str:
    found = shutil.which("dockerd", path=_SYSTEM_PATH)
    assert found is not None, "needs dockerd: scripts/system-packages installs it"
    return found


def _argv(pid: int) -> list[str]:
    return processes.Process(pid, 0, 0, "").argv


def _unmount(folder: Path) -> None:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    for path in sorted((line.split()[1] for line in lines), reverse=True):
        if f"{path}/".startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", path], check=False, capture_output=True)


def _write_whole(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)
