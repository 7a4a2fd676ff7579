"""What Docker says when it cannot, as a sentence with its remedy."""

import os
import re
from typing import Callable, List, Match, Tuple

from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.programs import Finished
from holdfast.farside.system.refusal import Refused

DOCKER = "docker"
"""Kind of a refusal: Docker cannot be used, or not like this."""
NO_GPUS = "gpu-way"
"""Kind of a refusal: this way of giving GPUs is not to be had here."""
NO_ROOM = "docker-no-room"
"""Kind of a refusal: the disk where Docker keeps images and containers is full."""
NO_IMAGE = "docker-no-image"
NAME_TAKEN = "docker-name-taken"
"""Kind of a refusal: nothing was made, and what has that name may be another's."""
NO_PROGRAM = "docker-no-program"
"""Kind of a refusal: what is to run in the container is not there, or does not run there."""
UNREACHABLE = "docker-unreachable"
"""Kind of a refusal: no daemon is there. One that is there and does not answer is none of these."""
ELSEWHERE = (
    "by HOLDFAST_HOME, where runs are submitted, for type `docker`; by `holdfastHome: DIR` in the compute target, or "
    "`holdfast computetarget attach remotedocker … --home DIR`, for type `remotedocker`"
)
"""How Holdfast's folder is put on another disk. The far side does not know for which of them it works."""
_TOOLKIT = (
    "install the package nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker && "
    "sudo systemctl restart docker"
)


def explain(answer: Finished, root: str = "") -> Refused:
    """`root`: where Docker keeps its images, if that is known."""
    said = words(answer)
    for pattern, kind, make in _KNOWN:
        found = re.search(pattern, said, re.IGNORECASE)
        if found is not None:
            sentence, remedy = make(found, root)
            return Refused(kind, sentence, remedy)
    return Refused(DOCKER, "Docker says: %s" % (said or "nothing, and ended with %s" % answer.code))


def words(answer: Finished) -> str:
    """What it said, without what stands before and after every complaint."""
    lines = [line.strip() for line in (answer.errors or answer.output).splitlines()]
    kept = [line for line in lines if line and not _NOISE.match(line)]
    text = " ".join(kept)
    for prefix in ("docker: ", "Error response from daemon: ", "Error: "):
        if text.startswith(prefix):
            text = text[len(prefix) :]
    return text.rstrip(".") + "." if text else ""


def is_gone(answer: Finished) -> bool:
    """Whether Docker says that there is no such container."""
    return re.search(r"no (?:such )?container", words(answer), re.IGNORECASE) is not None


def missing(program: str) -> Refused:
    return Refused(
        DOCKER,
        "There is no `%s` on the machine, or not on the PATH of this login." % program,
        "Install it: sudo apt-get install docker.io, or as https://docs.docker.com/engine/install/ says.",
    )


def _not_allowed(found: Match[str], root: str) -> Tuple[str, str]:
    name = _login()
    return (
        "This user (%s) may not use Docker: its socket is for the group `docker`." % name,
        "Once, on the machine: sudo usermod -aG docker %s. Then log in again (a shared ssh connection ends first)."
        % name,
    )


def _not_running(found: Match[str], root: str) -> Tuple[str, str]:
    return "Docker does not run on the machine.", "Start it: sudo systemctl start docker"


def _full(found: Match[str], root: str) -> Tuple[str, str]:
    where = " `%s`" % root if root else ""
    return (
        "The disk where Docker keeps images and containers is full%s." % (":" + where if where else ""),
        "Make room on the machine: docker system df shows what takes it, docker image prune -a removes images that no "
        "container uses.",
    )


def _no_driver(found: Match[str], root: str) -> Tuple[str, str]:
    return "Docker cannot give GPUs to containers on the machine.", "On the machine: " + _TOOLKIT


def _no_runtime(found: Match[str], root: str) -> Tuple[str, str]:
    return "Docker does not know the runtime `%s`." % found.group(1), "On the machine: " + _TOOLKIT


def _sick_driver(found: Match[str], root: str) -> Tuple[str, str]:
    return (
        "The GPUs could not be given to the container: %s" % found.group(0).strip(),
        "If `nvidia-smi` fails on the machine too, fix the driver first; else: " + _TOOLKIT,
    )


def _no_image(found: Match[str], root: str) -> Tuple[str, str]:
    name = found.group(1) or found.group(2)
    return "The image `%s` is not on the machine." % name, "docker pull %s" % pasted(name)


def _not_seen(found: Match[str], root: str) -> Tuple[str, str]:
    path = found.group(1).strip("'\" ")
    return (
        "Docker does not see `%s`: its daemon may not look into that folder, or sees another disk there." % path,
        "Have Holdfast's folder on a local disk that root may read (network homes and encrypted ones are closed to "
        "root; Docker from a snap sees little): %s." % ELSEWHERE,
    )


def _name_taken(found: Match[str], root: str) -> Tuple[str, str]:
    name = found.group(1)
    return (
        "There is a container `%s` already." % name,
        "Submit again: the next run has another name. Whose it is: docker inspect --format '{{json .Config.Labels}}' %s"
        % pasted(name),
    )


def _no_answer(found: Match[str], root: str) -> Tuple[str, str]:
    return (
        "Docker did not answer within %s s." % found.group(1),
        "Is it busy, or does it hang? If `docker ps` on the machine does not answer either: sudo systemctl restart "
        "docker",
    )


def _bad_option(found: Match[str], root: str) -> Tuple[str, str]:
    said = found.group(0).strip(". ")
    key = next((key for pattern, key in _KEYS if re.search(pattern, said, re.IGNORECASE)), "dockerArguments")
    return "Docker does not take an option: %s." % said, "Correct `%s` in the compute target.%s" % (key, _meant(said))


def _meant(said: str) -> str:
    """The option that the user may have wanted to write."""
    found = re.search(r"unknown flag: (--[\w-]+)", said)
    if found is None:
        return ""
    import difflib

    near = difflib.get_close_matches(found.group(1), ["--" + each for each in _USUAL.split()], 1)
    return " Did you mean %s?" % near[0] if near else ""


def _no_start(found: Match[str], root: str) -> Tuple[str, str]:
    return (
        "`%s` cannot be started in the container: %s." % (found.group(1), found.group(2).lower()),
        "It is not there, or is for another C library or architecture than the image's.",
    )


def _login() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


_KEYS = (
    (r"\"(?:-m, )?--memory\"|minimum memory limit", "memory"),
    (r"\"--cpus\"|range of cpus", "cpus"),
    (r"\"--shm-size\"|shm", "shmSize"),
    (r"\"--network\"|network [^ ]+ not found|invalid network", "network"),
)
"""What Docker's words are about, as the key in the target's file. What is none of these was written as it is."""
_USUAL = (
    "add-host annotation blkio-weight cap-add cap-drop cgroup-parent cgroupns cpu-period cpu-quota cpu-shares "
    "cpuset-cpus cpuset-mems device device-read-bps device-write-bps dns dns-search env env-file expose gpus group-add "
    "hostname init ip ipc label link log-driver log-opt mac-address memory-reservation memory-swap memory-swappiness "
    "mount network-alias oom-kill-disable oom-score-adj pid pids-limit platform privileged publish read-only runtime "
    "security-opt storage-opt sysctl tmpfs ulimit volumes-from"
)
_NOISE = re.compile(
    r"(?:See|Run) '[a-z]+ (?:[a-z]+ )*--help'|WARNING: |Emulate Docker CLI|time=\"|[0-9a-f]{64}\Z", re.IGNORECASE
)
_Make = Callable[[Match[str], str], Tuple[str, str]]
_KNOWN: List[Tuple[str, str, _Make]] = [
    (r"it did not answer within (\d+) s", DOCKER, _no_answer),
    (r"permission denied while trying to connect|dial unix [^ ]+ connect: permission denied", DOCKER, _not_allowed),
    (
        r"cannot connect to the docker daemon|is the docker daemon running|error during connect"
        r"|failed to connect to the docker api"
        r"|dial unix [^ ]+ connect: (?:no such file or directory|connection refused)"
        r"|unable to connect to podman",
        UNREACHABLE,
        _not_running,
    ),
    (r"no space left on device|disk quota exceeded", NO_ROOM, _full),
    (r"could not select device driver|unresolvable CDI devices?|cdi device injection failed", NO_GPUS, _no_driver),
    (r"(?:unknown or invalid runtime name|unknown runtime specified):? ([\w-]+)", NO_GPUS, _no_runtime),
    (r"nvidia-container-(?:cli|runtime[\w-]*): .*", NO_GPUS, _sick_driver),
    (r"No such image: ([^\s]+)|Unable to find image '([^']+)' locally", NO_IMAGE, _no_image),
    (
        r"exec:? \"([^\"]+)\".*?(no such file or directory|not found in \$PATH|permission denied|exec format error"
        r"|is a directory)",
        NO_PROGRAM,
        _no_start,
    ),
    (
        r"executable file [`']?([^`' ]+)[`']? (not found(?: in \$PATH)?)",
        NO_PROGRAM,
        _no_start,
    ),
    (r"bind source path does not exist: ([^\n]+?)\.?\Z", DOCKER, _not_seen),
    (r"error while creating mount source path '([^']+)'", DOCKER, _not_seen),
    (r"invalid mount config for type \"bind\": (?:stat|lstat) ([^:]+):", DOCKER, _not_seen),
    (r"mounts denied: .*?(/[^\s]+)", DOCKER, _not_seen),
    (r"(?:stat|statfs|lstat) (/[^:]+): (?:no such file or directory|permission denied)", DOCKER, _not_seen),
    (r"container name \"/?([^\"]+)\" is already in use", NAME_TAKEN, _name_taken),
    (
        r"(?:unknown (?:shorthand )?flag|invalid argument|invalid value|minimum memory limit|range of cpus"
        r"|network [^ ]+ not found|invalid (?:network|option|memory|size)|conflicting options|bad format).*",
        DOCKER,
        _bad_option,
    ),
]
