"""What Docker says when it cannot, as a sentence with its remedy."""

import os
import re
from typing import Callable, List, Match, NamedTuple, Optional, Tuple

from holdfast.farside.refusal import Refused

DOCKER = "docker"
"""Kind of a refusal: Docker cannot be used, or not like this."""
NO_GPUS = "gpu-way"
"""Kind of a refusal: this way of giving GPUs is not to be had here."""
NO_ROOM = "docker-no-room"
NO_IMAGE = "docker-no-image"
UNREACHABLE = "docker-unreachable"
TOOLKIT = (
    "install the package nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker && "
    "sudo systemctl restart docker"
)


class Answer(NamedTuple):
    """Of one call. `code` None: it was ended by us, since nothing came in time, or could not be started."""

    code: Optional[int]
    output: str
    errors: str

    @property
    def is_good(self) -> bool:
        return self.code == 0


def explain(answer: Answer, root: str = "") -> Refused:
    """`root`: where Docker keeps its images, if that is known."""
    said = words(answer)
    for pattern, kind, make in _KNOWN:
        found = re.search(pattern, said, re.IGNORECASE)
        if found is not None:
            sentence, remedy = make(found, root)
            return Refused(kind, sentence, remedy)
    return Refused(DOCKER, "Docker says: %s" % (said or "nothing, and ended with %s" % answer.code))


def words(answer: Answer) -> str:
    """What it said, without what stands before and after every complaint."""
    lines = [line.strip() for line in (answer.errors or answer.output).splitlines()]
    kept = [line for line in lines if line and not _NOISE.match(line)]
    text = " ".join(kept)
    for prefix in ("docker: ", "Error response from daemon: ", "Error: "):
        if text.startswith(prefix):
            text = text[len(prefix) :]
    return text.rstrip(".") + "." if text else ""


def missing(program: str) -> Refused:
    return Refused(
        DOCKER,
        "There is no `%s` on this machine, or not on the PATH of this login." % program,
        "Install it there: sudo apt-get install docker.io, or as https://docs.docker.com/engine/install/ says.",
    )


def _not_allowed(found: Match[str], root: str) -> Tuple[str, str]:
    name = _login()
    return (
        "This user (%s) may not use Docker: its socket is for the group `docker`." % name,
        "Once, over there: sudo usermod -aG docker %s. Then log in again (a shared ssh connection has to end first)."
        % name,
    )


def _not_running(found: Match[str], root: str) -> Tuple[str, str]:
    return "Docker does not run on this machine.", "Start it there: sudo systemctl start docker"


def _full(found: Match[str], root: str) -> Tuple[str, str]:
    where = " `%s`" % root if root else ""
    return (
        "The disk where Docker keeps images and containers is full%s." % (":" + where if where else ""),
        "Make room there: docker system df shows what takes it, docker image prune -a removes images that no "
        "container uses.",
    )


def _no_driver(found: Match[str], root: str) -> Tuple[str, str]:
    return "Docker cannot give GPUs to containers on this machine.", "Over there: " + TOOLKIT


def _no_runtime(found: Match[str], root: str) -> Tuple[str, str]:
    return "Docker does not know the runtime `%s`." % found.group(1), "Over there: " + TOOLKIT


def _sick_driver(found: Match[str], root: str) -> Tuple[str, str]:
    return (
        "The GPUs could not be given to the container: %s" % found.group(0).strip(),
        "If `nvidia-smi` fails over there too, the driver is to be mended first; else: " + TOOLKIT,
    )


def _no_image(found: Match[str], root: str) -> Tuple[str, str]:
    name = found.group(1) or found.group(2)
    return "The image `%s` is not on this machine." % name, "docker pull %s" % name


def _not_seen(found: Match[str], root: str) -> Tuple[str, str]:
    path = found.group(1).strip("'\" ")
    return (
        "Docker does not see `%s`: its daemon may not look into that folder, or sees another disk there." % path,
        "Have Holdfast's folder on a local disk that root may read: write `holdfastHome: /some/folder` into the "
        "compute target (network homes and encrypted ones are closed to root; Docker from a snap sees little).",
    )


def _name_taken(found: Match[str], root: str) -> Tuple[str, str]:
    return "There is a container `%s` already." % found.group(1), "docker rm -f %s" % found.group(1)


def _bad_option(found: Match[str], root: str) -> Tuple[str, str]:
    return (
        "Docker does not understand an option: %s." % found.group(0).strip(". "),
        "It comes from `dockerArguments`, `memory`, `cpus`, `network` or `shmSize` of the compute target.",
    )


def _no_start(found: Match[str], root: str) -> Tuple[str, str]:
    return (
        "Nothing can be started in the container: %s" % found.group(0).strip(),
        "A program that is not there, or one for another C library or architecture than the image's.",
    )


def _login() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


_NOISE = re.compile(
    r"(?:See|Run) '[a-z]+ (?:[a-z]+ )*--help'|WARNING: |Emulate Docker CLI|time=\"|[0-9a-f]{64}\Z", re.IGNORECASE
)
_Make = Callable[[Match[str], str], Tuple[str, str]]
_KNOWN: List[Tuple[str, str, _Make]] = [
    (r"permission denied while trying to connect|dial unix [^ ]+ connect: permission denied", DOCKER, _not_allowed),
    (
        r"cannot connect to the docker daemon|is the docker daemon running|error during connect"
        r"|failed to connect to the docker api|connect: (?:no such file or directory|connection refused)"
        r"|unable to connect to podman",
        UNREACHABLE,
        _not_running,
    ),
    (r"no space left on device|disk quota exceeded", NO_ROOM, _full),
    (r"could not select device driver|unresolvable CDI devices?|cdi device injection failed", NO_GPUS, _no_driver),
    (r"(?:unknown or invalid runtime name|unknown runtime specified):? ([\w-]+)", NO_GPUS, _no_runtime),
    (r"nvidia-container-(?:cli|runtime[\w-]*): .*", NO_GPUS, _sick_driver),
    (r"No such image: ([^\s]+)|Unable to find image '([^']+)' locally", NO_IMAGE, _no_image),
    (r"bind source path does not exist: ([^\n]+?)\.?\Z", DOCKER, _not_seen),
    (r"error while creating mount source path '([^']+)'", DOCKER, _not_seen),
    (r"invalid mount config for type \"bind\": (?:stat|lstat) ([^:]+):", DOCKER, _not_seen),
    (r"mounts denied: .*?(/[^\s]+)", DOCKER, _not_seen),
    (r"(?:stat|statfs|lstat) (/[^:]+): (?:no such file or directory|permission denied)", DOCKER, _not_seen),
    (r"container name \"/?([^\"]+)\" is already in use", DOCKER, _name_taken),
    (
        r"(?:unknown (?:shorthand )?flag|invalid argument|invalid value|minimum memory limit|range of cpus"
        r"|network [^ ]+ not found|invalid (?:network|option|memory|size)|conflicting options|bad format).*",
        DOCKER,
        _bad_option,
    ),
    (r"exec:? .*(?:no such file or directory|not found in \$PATH|permission denied|format error).*", DOCKER, _no_start),
]
