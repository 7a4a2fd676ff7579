"""A Docker engine for rows that run containers: its own data and socket, images made by the tests' kit, nothing of the
machine's own Docker. Commands by hand and ours use the same engine, the same `docker` and the same image."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import children
from children import Place
from far_boxes import FarBox, without_link
from measuring import Contender, FailedError
from package_places import with_programs

from kit.boxes import Boxes
from kit.docker.boxes import docker_box
from kit.docker.daemon import Daemon, Settings
from kit.docker.holding import held
from kit.docker.images import PYTHON, template
from kit.sshd import Options
from kit.waiting import wait_for

_NEEDED = ("dockerd", "docker", "containerd", "debootstrap", "ip")
_TIMED = """\
#!/bin/sh
# docker, with a note of when it began and ended
begin=$(date +%s%N)
{docker} "$@"
code=$?
echo "$begin $(date +%s%N) $*" >>{log}
exit $code
"""


@contextmanager
def engine(hook: bool = False) -> Iterator[Daemon]:
    """A daemon that runs and has the kit's images. Raises FailedError if none can be made. `hook`: it can give
    containers GPUs."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in _NEEDED if shutil.which(name, path=path) is None]
    if missing:
        raise FailedError(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise FailedError("a Docker engine can only be started by root")
    with ExitStack() as closing:
        try:
            daemon = closing.enter_context(held(Settings(hook=hook), template()))
            daemon.start()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            raise FailedError(f"no Docker engine could be started: {str(error)[:200]}") from error
        yield daemon


def using(place: Place, daemon: Daemon) -> Place:
    """The same place, whose commands find this engine."""
    return replace(place, variables=(*place.variables, *daemon.environment.items()))


def attach(place: Place, *lines: str, image: str = PYTHON) -> None:
    """The target `here` as `attach docker` writes it, with `lines` below."""
    children.run(place, ["holdfast", "computetarget", "attach", "docker", "--name", "here", "--image", image])
    with (place.project / "aml_config" / "here.compute").open("a") as compute:
        compute.writelines(f"{line}\n" for line in lines)


def attach_far(place: Place, far: FarBox, image: str = PYTHON) -> Place:
    """The same place with the box as a target, as `attach remotedocker` writes it."""
    known = replace(place, variables=(*place.variables, *far.box.environment.items()))
    words = ["remotedocker", "--name", far.name, "--address", far.name, "--image", image]
    children.run(known, ["holdfast", "computetarget", "attach", *words])
    return known


def make_docker_box(kit: Boxes, daemon: Daemon, name: str, environment: Mapping[str, str] | None = None) -> FarBox:
    """A new account that may use the engine, on a new server; its sessions also have `environment`."""
    options = Options(environment=environment or {})
    return without_link(docker_box(kit, kit.client(), daemon, name, options=options))


def typed(folder: str | Path, *options: str, image: str = PYTHON) -> list[str]:
    """`docker run` of the script in `folder` as a person types it."""
    return ["docker", "run", "--rm", *options, "-v", f"{folder}:/work", "-w", "/work", image, "python3", "s.py"]


def in_turn(daemon: Daemon, contenders: Sequence[Contender]) -> list[Contender]:
    """The same contenders, each with the engine to itself."""

    def alone(contender: Contender) -> Contender:
        def measured() -> float:
            settle(daemon)
            return contender.measure()

        return Contender(contender.name, measured)

    return [alone(each) for each in contenders]


def settle(daemon: Daemon) -> None:
    """Wait until no container is left: one that is still being removed would slow what comes next."""
    wait_for(lambda: not daemon.containers(), what="the containers are gone")


def calls(place: Place, argv: Sequence[str]) -> str:
    """Run a command and return its calls of `docker` on this machine, in milliseconds since the first one."""
    programs, log = place.root / "tmp" / "timed", place.root / "tmp" / "docker-calls"
    programs.mkdir(exist_ok=True)
    real = shutil.which("docker", path=place.environment()["PATH"]) or "docker"
    program = programs / "docker"
    program.write_text(_TIMED.format(docker=shlex.quote(real), log=shlex.quote(str(log))))
    program.chmod(0o755)
    log.write_text("")
    done = children.run(with_programs(place, programs), argv)
    return "\n".join([f"Calls of docker by `{shlex.join(argv)}`, which took {done.seconds * 1000:.0f} ms", *_told(log)])


def _told(log: Path) -> list[str]:
    rows = sorted(line.split(" ", 2) for line in log.read_text().splitlines() if line[:1].isdigit())
    first = int(rows[0][0]) if rows else 0
    return [
        f"  {(int(begin) - first) / 1e6:7.1f} ms  took {(int(end) - int(begin)) / 1e6:7.1f}  docker {words[:150]}"
        for begin, end, words in rows
    ]
