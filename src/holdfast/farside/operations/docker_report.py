"""Docker as it is on this machine, for `attach` and `check`: what it is, how much room it has, and a
container that does what runs do: writes to Holdfast's folder, speaks through a pipe in it, sees the GPUs."""

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from holdfast.farside.containers import container_age, docker_options, images
from holdfast.farside.containers.daemon import Daemon, DockerClient, forget
from holdfast.farside.containers.docker_errors import DOCKER, ELSEWHERE, NO_GPUS, explain
from holdfast.farside.containers.outfit import require_gpus, require_python, require_sources, traced
from holdfast.farside.containers.pull import pull
from holdfast.farside.operations import leftover_containers
from holdfast.farside.operations.account import account_name
from holdfast.farside.operations.logout import lingers
from holdfast.farside.system.bound_plan import bind
from holdfast.farside.system.files import remove_tree
from holdfast.farside.system.layout import Home
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused

Message = Dict[str, Any]
Tell = Callable[[str], None]
"""Called with what is being done, now and then while it takes long."""

ABSENT = "image-absent"
PATIENCE = 300.0
"""Seconds for a container that has nothing to do; as long as a run gives Docker to make one."""
_REMOVING = 30.0
_WROTE, PIPE, _GPU = "wrote", "pipe", "gpu"
_NOT_WRITTEN, _NO_PYTHON = 3, 4
"""Exit codes of `_SCRIPT`."""
_POWERLESS = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
_SCRIPT = """
umask 077
: > "$1/wrote" || exit 3
for each in /dev/nvidiactl /dev/dxg /usr/lib/*/libnvidia-ml.so.1 /usr/lib64/libnvidia-ml.so.1 \\
    /usr/lib/libnvidia-ml.so.1 /usr/local/nvidia/lib64/libnvidia-ml.so.1; do
  if [ -e "$each" ]; then echo gpu; break; fi
done
echo here > "$1/pipe"
if [ -n "$2" ]; then "$2" -I -S -c '' || exit 4; fi
"""
"""For `/bin/sh` and nothing else: no more is asked of an image."""


def look(home: Home, message: Message, tell: Tell) -> Dict[str, Any]:
    """Refused with what keeps this user from Docker, and the remedy. Asked anew, whatever was known before."""
    home.make()
    forget(home)
    daemon = DockerClient().daemon(home)
    free, total = _room(daemon.root_dir)
    user = account_name()
    return {
        "kind": daemon.kind,
        "version": daemon.version,
        "system": daemon.name,
        "is_rootless": daemon.rootless,
        "user": user,
        "lingers": lingers(user) if daemon.rootless else None,
        "remaps": daemon.remaps,
        "root": daemon.root_dir,
        "free": free,
        "total": total,
        "leftovers": leftover_containers.find(home),
    }


def attempt(home: Home, message: Message, tell: Tell) -> Dict[str, Any]:
    """Make a container as `container` of the plan says, with its volumes, network and limits, and the GPUs if `gpus`;
    an image's own Python is started. With `pull` an image that is not there is fetched; without it somebody only looks,
    so that no folder is mounted over the image's programs, and the container has no rights. Answers the way by which
    the container got the GPUs; an empty one, and a `problem`, if it did not. Refused in the words that a run would
    get."""
    home.make()
    bound = bind(message["container"], {"account": os.path.expanduser("~")})
    docker, wanted = DockerClient(str(bound["program"])), docker_options.parse(bound)
    daemon = docker.daemon(home)
    require_sources(wanted)
    require_gpus(wanted, docker.environment)
    _require_image(docker, wanted.image, bool(message.get("pull")), tell)
    image = images.find(docker, bound, home, None)
    python = ""
    if not message.get("pull"):
        wanted = wanted._replace(volumes=(), options=wanted.options + _POWERLESS)
    if wanted.python:
        python = image.python(wanted.python) or ""
        require_python(wanted, python)
    trial = _Trial(home, docker, daemon, image.id, wanted, python)
    problem = ""
    for way in daemon.gpu_ways() if message.get("gpus") else []:
        try:
            if trial.sees_gpus(way):
                return {"image": image.id, "gpus": way, "problem": ""}
            problem = problem or "a container that was given them finds none"
        except Refused as refusal:
            if refusal.kind != NO_GPUS:
                raise
            problem = problem or refusal.message
    trial.sees_gpus("")
    return {"image": image.id, "gpus": "", "problem": problem}


def _require_image(docker: DockerClient, name: str, pulls: bool, tell: Tell) -> None:
    if images.inspect(docker, name) is None:
        if not pulls:
            raise Refused(ABSENT, "The image `%s` is not on this machine." % name)
        pull(docker, name, tell)
    tell("trying a container of %s" % name)


class _Trial(NamedTuple):
    """`python` is the image's own that the script would run with, empty for an environment's."""

    home: Home
    docker: DockerClient
    daemon: Daemon
    image: str
    wanted: docker_options.WantedContainer
    python: str

    def sees_gpus(self, way: str) -> bool:
        """Run one container to its end, in the way that runs are; whether it finds GPUs. Refused where it cannot write
        to the folder, where what it writes is another's, where its pipes are not this machine's, and where its Python
        does not start."""
        folder = self._folder()
        reader = os.open(os.path.join(folder, PIPE), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        name = "holdfast-try-" + os.urandom(6).hex()
        try:
            answer = self.docker.call(self._words(name, folder, way), PATIENCE)
            said = _read(reader)
            status = _stat(os.path.join(folder, _WROTE))
        finally:
            self.docker.call(["rm", "-f", "-v", name], _REMOVING)
            os.close(reader)
            self._remove(folder)
        if status is None and answer.code == _NOT_WRITTEN:
            raise _not_written(self.home, answer.errors)
        if status is None:
            raise traced(explain(answer, self.daemon.root_dir), self.wanted)
        _require_own(self.home, status)
        if not said:
            raise _elsewhere(self.daemon)
        if answer.code == _NO_PYTHON:
            require_python(self.wanted, "")
        return _GPU in answer.output.split()

    def _words(self, name: str, folder: str, way: str) -> List[str]:
        """As those of a run, but that the caller waits for its end."""
        words = ["run"] + (["--shm-size", self.wanted.shm] if self.wanted.shm else []) + docker_options.gpus(way)
        words += list(self.wanted.options) + ["--detach=false", "--rm=false", "--name", name]
        words += docker_options.identity(self.daemon, os.getuid(), os.getgid(), os.getgroups())
        words += docker_options.security(self.daemon) + docker_options.mount(folder, folder, True)
        for volume in self.wanted.volumes:
            words += docker_options.mount(volume.source, volume.target, volume.is_writable)
        words += ["--label", "%s=%s" % (docker_options.HOME_LABEL, self.home.path)]
        words += ["--label", "%s=%d" % (docker_options.USER_LABEL, os.getuid())]
        words += ["--label", "%s=%s" % (container_age.LABEL, container_age.begun())]
        return words + ["--entrypoint", "/bin/sh", self.image, "-c", _SCRIPT, "holdfast", folder, self.python]

    def _folder(self) -> str:
        self.home.make()
        folder = os.path.join(self.home.path, "proofs", "docker-" + os.urandom(6).hex())
        make_private(folder)
        os.mkfifo(os.path.join(folder, PIPE), 0o600)
        return folder

    def _remove(self, folder: str) -> None:
        try:
            remove_tree(folder)
            os.rmdir(os.path.dirname(folder))
        except OSError:
            pass  # another attach has its own in there, or a file is not ours to remove


def _require_own(home: Home, status: os.stat_result) -> None:
    if status.st_uid != os.getuid():
        raise Refused(
            DOCKER,
            "What containers write to `%s` belongs to another user (uid %d, not %d): this account could not remove it."
            % (home.path, status.st_uid, os.getuid()),
            "Does the Docker daemon map users in a way of its own? `docker info` says it under Security Options.",
        )


def _not_written(home: Home, said: str) -> Refused:
    last = said.strip().splitlines()[-1:] or ["it does not say why"]
    return Refused(
        DOCKER,
        "A container cannot write to Holdfast's folder `%s`: %s." % (home.path, last[0].rstrip(".")),
        "Choose one on a local disk: %s." % ELSEWHERE,
    )


def _elsewhere(daemon: Daemon) -> Refused:
    return Refused(
        DOCKER,
        "Containers run in a system of their own (%s): what they write to a pipe does not arrive here."
        % (daemon.name or "a virtual machine"),
        "Use the Docker Engine of the machine itself: docker context use default.",
    )


def _room(root: str) -> Tuple[Optional[int], Optional[int]]:
    """Free and all bytes of the disk with the images. A path that this user does not see may be another system's."""
    try:
        found = os.statvfs(root)
    except OSError:
        return None, None
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize


def _read(reader: int) -> bytes:
    try:
        return os.read(reader, 4096)
    except BlockingIOError:
        return b""


def _stat(path: str) -> Optional[os.stat_result]:
    try:
        return os.lstat(path)
    except OSError:
        return None
