"""Where things are in the host's one folder, and which names may stand in a path."""

import json
import os
import re
from typing import List

from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")

_FARSIDE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENTRY = os.path.join(_FARSIDE, "main.py")
"""What a process of the far side is started with."""
SHIPPED = os.path.dirname(os.path.dirname(_FARSIDE))
"""The folder that all of it came in, named by its hash."""

JOURNAL, OUTPUT, CONTROL, RESERVE = "journal.jsonl", "driver_log", "control_log", "reserve"
ENVIRONMENT = "environment.json"
"""In a run's folder: the lock of what it ran in, so that another can run in the same."""
SAMPLES, GPU_FACTS = "gpu.jsonl", "gpu.json"
"""What was seen of the GPUs while the script ran, and what was known of them before."""
STACKS = "stacks"
"""Where the Python processes of a run write their stacks when they are asked to."""
BUILD = "build"
"""In a run's folder: what installers read and write while its environment is made."""
CONTAINER, FIFO, INSIDE = "container.json", "output.fifo", "inside"
"""In the folder of a run in a container: what it is, its output's way out, and what the launcher in it reads and
writes."""
LOCK = "lock"
"""In a run's folder: who has the run holds bytes of it."""
OWNER, SECRETS, CANCEL, BOUND = "owner.json", "secrets", "cancel", "bound.json"
"""In a run's folder: who has it; what its supervisor reads and deletes, where an engine starts that later; the wish
that it ends; its command with all holes filled."""
BYTECODE = ".bytecode"
"""In an environment: what containers compile. It is made with the folders for bytecode beside its modules."""
GENERATION = "HOLDFAST_GENERATION"
"""The variable that every process of a run has with a value of its own, and no other process has."""
GUARDIAN_BYTE, SUPERVISOR_BYTE, STARTER_BYTE = 0, 1, 2
"""Of a run's lock: held by those two while they live, and by an agent while it hands the run to an engine."""
BUILD_BYTE, USE_BYTE = 0, 1

MARKER = ".holdfast-home"
"""In every folder of Holdfast's: nothing is removed from one that does not have it."""

GUARDIAN_NAME = "hf-guardian"
SUPERVISOR_NAME = "hf-supervisor"
KEEPER_NAME = "hf-keeper"
READER_NAME = "hf-gpus"
"""Of the process that asks NVML; a sick driver may hold it for ever."""
SAMPLER_NAME = "hf-sampler"
"""Of the process that watches the GPUs of a run; the same holds for it."""
ENGINE_NAMES = (
    *("conmon", "catatonit", "podman pause", "fuse-overlayfs", "slirp4netns", "pasta", "pasta.avx2", "passt"),
    *("rootlessport", "rootlessport-ch", "aardvark-dns"),
)
"""Of processes by which an engine without a daemon keeps containers: Podman's stay below their caller."""


class Home:
    """The host's folder. Every name that came over the wire is checked here before it becomes part of a path."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    STATE = ("farside", "proofs", "machine", "shipped")
    """What is there before any run is. `NAMES`: all that the far side puts there; `PASSING`: how names of what is being
    made or removed begin."""
    BUILT = ("environments", "locks", "tools", "cache", "pythons")
    CONTAINED = ("docker.json", "images", "container-home")
    NAMES = STATE + BUILT + CONTAINED + ("objects", "data", "share", "runs", "settings.json", "shells", "engines")
    PASSING = (".removing-", ".purging-", "settings.json.new-", "machine.new-", "docker.json.new-", ".hf-new-")
    CLIENTS = ("keys", "askpass", "ssh-", "projects", "run-")
    """How names begin of what Holdfast puts there as a client on this machine: keys of other machines, and which
    projects are this account's, are never purged."""

    def make(self) -> None:
        """For this account alone, and marked as Holdfast's. A repeat changes nothing; a folder that holds something
        else is left as it is (`operations/account.py` says whose that is)."""
        if os.path.exists(self.marker()):
            return
        make_private(os.path.dirname(self.path))
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            others = [name for name in os.listdir(self.path) if name not in self.STATE]
            if any(not name.startswith(self.CLIENTS + self.PASSING) for name in others):
                return
            self.mark(found=True)
        else:
            self.mark(found=False)

    def mark(self, found: bool) -> None:
        """`found`: the folder was there before Holdfast was. A disk that takes nothing is no reason not to answer."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(self.marker(), flags, 0o600), "w") as target:
                json.dump({"format": 1, "found": True} if found else {"format": 1}, target)
        except OSError:
            pass

    def marker(self) -> str:
        return os.path.join(self.path, MARKER)

    @classmethod
    def knows(cls, name: str) -> bool:
        """Whether something of that name in the folder is the far side's own."""
        return name == MARKER or name in cls.NAMES or name.startswith(cls.PASSING)

    def runs(self) -> str:
        return os.path.join(self.path, "runs")

    def run(self, project: str, run: str) -> str:
        return os.path.join(self.runs(), checked(project), checked(run))

    def new_run(self, project: str, generation: str) -> str:
        return os.path.join(self.runs(), checked(project), ".new-" + checked(generation))

    def share(self, project: str) -> str:
        return os.path.join(self.path, "share", checked(project))

    def objects(self) -> str:
        return os.path.join(self.path, "objects")

    def data(self) -> str:
        """Data that was sent for runs."""
        return os.path.join(self.path, "data")

    def data_folder(self, digest: str) -> str:
        if not is_digest(digest):
            raise Refused("refused", "`%s` is not a digest." % (digest,))
        return os.path.join(self.data(), digest)

    def environments(self) -> str:
        return os.path.join(self.path, "environments")

    def environment(self, name: str) -> str:
        return os.path.join(self.environments(), checked(name))

    def cache(self) -> str:
        return os.path.join(self.path, "cache")

    def locks(self) -> str:
        return os.path.join(self.path, "locks")

    def pythons(self) -> str:
        return os.path.join(self.path, "pythons")

    def tools(self) -> str:
        return os.path.join(self.path, "tools")

    def docker(self) -> str:
        """What is known of this machine's Docker."""
        return os.path.join(self.path, "docker.json")

    def images(self) -> str:
        """What is known of images, by their ids."""
        return os.path.join(self.path, "images")

    def container_home(self) -> str:
        """The home of scripts in containers: models that they download are there for the next run too."""
        return os.path.join(self.path, "container-home")

    def had_containers(self) -> bool:
        """Whether Docker was ever asked for one here. What is known of the daemon itself comes and goes."""
        return any(os.path.lexists(os.path.join(self.path, name)) for name in self.CONTAINED)

    def engines(self) -> str:
        """Engines that this host has beside those of the far side."""
        return os.path.join(self.path, "engines")

    def versions(self) -> str:
        return os.path.join(self.path, "farside")


def checked(name: str) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise Refused("refused", "`%s` is not a name that may stand in a path." % (name,))
    return name


def is_digest(text: object) -> bool:
    return isinstance(text, str) and _DIGEST.match(text) is not None


def object_path(store: str, digest: str) -> str:
    if not is_digest(digest):
        raise Refused("refused", "`%s` is not a digest." % (digest,))
    return os.path.join(store, digest[:2], digest[2:])


def relative_parts(path: str) -> List[str]:
    """The parts of a relative path that stays below its root."""
    parts = path.split("/") if isinstance(path, str) else [""]
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise Refused("refused", "`%s` is not a path below the run's folder." % (path,))
    return parts
