"""Docker as it is on this machine, for whoever attaches or checks a target: what it is, how much room it has, and a
container that does what runs do: writes to Holdfast's folder, speaks through a pipe in it, sees the GPUs."""

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from holdfast.farside.containers import images, leftovers, options
from holdfast.farside.containers.complaints import DOCKER, NO_GPUS, explain
from holdfast.farside.containers.docker import Daemon, Docker, forget
from holdfast.farside.layout import Home
from holdfast.farside.refusal import Refused
from holdfast.farside.run.files import remove_tree

Message = Dict[str, Any]
Tell = Callable[[str], None]
"""Called with what is being done, now and then while it takes long."""

ABSENT = "image-absent"
PATIENCE = 30.0
"""Seconds for a container that has nothing to do."""
WROTE, PIPE, GPU = "wrote", "pipe", "gpu"
_SCRIPT = """
umask 077
: > "$1/wrote" || exit 3
for each in /dev/nvidiactl /dev/dxg /usr/lib/*/libnvidia-ml.so.1 /usr/lib64/libnvidia-ml.so.1 \\
    /usr/lib/libnvidia-ml.so.1 /usr/local/nvidia/lib64/libnvidia-ml.so.1; do
  if [ -e "$each" ]; then echo gpu; break; fi
done
echo here > "$1/pipe"
"""
"""For `/bin/sh` and nothing else: no more is asked of an image."""


def look(home: Home, message: Message, tell: Tell) -> Dict[str, Any]:
    """Refused with what keeps this user from Docker, and what mends it. Asked anew, whatever was known before."""
    forget(home)
    daemon = Docker().daemon(home)
    free, total = _room(daemon.root_dir)
    return {
        "kind": daemon.kind,
        "version": daemon.version,
        "system": daemon.name,
        "rootless": daemon.rootless,
        "remaps": daemon.remaps,
        "root": daemon.root_dir,
        "free": free,
        "total": total,
        "leftovers": leftovers.find(home),
    }


def attempt(home: Home, message: Message, tell: Tell) -> Dict[str, Any]:
    """Make a container of `image`, with the GPUs if `gpus`. With `pull` an image that is not there is fetched. `file`
    is where the image is named, for people. Answers the way by which the container got the GPUs; an empty one, and a
    `problem`, if it did not."""
    docker, name = Docker(), str(message["image"])
    daemon = docker.daemon(home)
    if images.inspect(docker, name) is None:
        if not message.get("pull"):
            raise Refused(ABSENT, "The image `%s` is not on this machine." % name)
        images.pull(docker, name, tell)
    tell("trying a container of %s" % name)
    image = images.find(docker, {"image": name, "file": message.get("file", "")}, home, None)
    trial = _Trial(home, docker, daemon, image.id)
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


OPERATIONS: Dict[str, Callable[[Home, Message, Tell], Dict[str, Any]]] = {"docker": look, "docker-try": attempt}


class _Trial(NamedTuple):
    home: Home
    docker: Docker
    daemon: Daemon
    image: str

    def sees_gpus(self, way: str) -> bool:
        """Run one container to its end, in the way that runs are; whether it finds GPUs. Refused where it cannot write
        to the folder, where what it writes is another's, and where its pipes are not this machine's."""
        folder = self._folder()
        reader = os.open(os.path.join(folder, PIPE), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        name = "holdfast-try-" + os.urandom(6).hex()
        answer = None
        try:
            answer = self.docker.call(["run", "--rm", "--name", name] + self._words(folder, way), PATIENCE)
            said = _read(reader)
            status = _stat(os.path.join(folder, WROTE))
        finally:
            if answer is None or answer.code is None:
                self.docker.call(["rm", "-f", name], PATIENCE)
            os.close(reader)
            self._remove(folder)
        if status is None and answer.code == 3:
            raise _not_written(self.home, answer.errors)
        if status is None:
            raise explain(answer, self.daemon.root_dir)
        _require_own(self.home, status)
        if not said:
            raise _elsewhere(self.daemon)
        return GPU in answer.output.split()

    def _words(self, folder: str, way: str) -> List[str]:
        words = options.identity(self.daemon, os.getuid(), os.getgid(), os.getgroups())
        words = list(words) + list(options.security(self.daemon)) + list(options.mount(folder, folder, True))
        words += options.gpus(way)
        words += ["--label", "%s=%s" % (options.HOME_LABEL, self.home.path)]
        words += ["--label", "%s=%d" % (options.USER_LABEL, os.getuid())]
        return words + ["--network", "none", "--entrypoint", "/bin/sh", self.image, "-c", _SCRIPT, "holdfast", folder]

    def _folder(self) -> str:
        self.home.make()
        folder = os.path.join(self.home.path, "proofs", "docker-" + os.urandom(6).hex())
        os.makedirs(folder, mode=0o700)
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
            "What containers write to `%s` belongs to another user (uid %d, not %d): nobody could remove it."
            % (home.path, status.st_uid, os.getuid()),
            "Does the Docker daemon map users in a way of its own? `docker info` says it under Security Options.",
        )


def _not_written(home: Home, said: str) -> Refused:
    last = said.strip().splitlines()[-1:] or ["it does not say why"]
    return Refused(
        DOCKER,
        "A container cannot write to Holdfast's folder `%s`: %s." % (home.path, last[0].rstrip(".")),
        "Choose one on a local disk: --home DIR, or `holdfastHome` of the compute target.",
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
