"""The words of `docker run`, from what is known: pure functions, so that what a container gets can be read and tested
without one."""

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.containers.daemon import CDI, CDI_DEVICE, HOOK, Daemon

if TYPE_CHECKING:
    from holdfast.farside.gpu.devices import GpuDevice

_VOID = "NVIDIA_VISIBLE_DEVICES=void"
"""No GPU by NVIDIA's runtime, also where the daemon has it give all of them to every image that asks."""
_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
HOME_LABEL, RUN_LABEL, PROJECT_LABEL, USER_LABEL = "holdfast.home", "holdfast.run", "holdfast.project", "holdfast.uid"
SHELL_LABEL = "holdfast.shell"
"""Of a container in which a person works."""
_SMALL_SHM = 64 << 20


class Volume(NamedTuple):
    source: str
    target: str
    is_writable: bool


class WantedContainer(NamedTuple):
    """The plan's container with its holes filled: `plan.ContainerPlan` as it arrives."""

    image: str
    known_as: str
    gpus: Optional[bool]
    options: Tuple[str, ...]
    shm: Optional[str]
    volumes: Tuple[Volume, ...]
    share: str
    name: str
    labels: Tuple[Tuple[str, str], ...]
    python: Optional[str]
    file: str


class Account(NamedTuple):
    """Who runs the script, on the machine."""

    name: str
    uid: int
    gid: int
    groups: Tuple[int, ...]


class Around(NamedTuple):
    """What a container is made from. `image` is the id, `variables` are no secrets, `way` is how it gets GPUs, empty
    for none, `grace` how long a stop from outside should wait, `entry` the first process's words. `gpus` None:
    all that there are."""

    daemon: Daemon
    account: Account
    image: str
    mounts: Tuple[Volume, ...]
    variables: Tuple[Tuple[str, str], ...]
    labels: Tuple[Tuple[str, str], ...]
    shm: str
    way: str
    grace: float
    directory: str
    entry: Tuple[str, ...]
    gpus: "Optional[Tuple[GpuDevice, ...]]" = None


def parse(found: Dict[str, Any]) -> WantedContainer:
    """From `plan["container"]`, bound."""
    volumes = [Volume(str(each["source"]), str(each["target"]), bool(each["is_writable"])) for each in found["volumes"]]
    return WantedContainer(
        image=str(found["image"]),
        known_as=str(found.get("known_as") or found["image"]),
        gpus=found["gpus"],
        options=tuple(str(each) for each in found["options"]),
        shm=found["shm"],
        volumes=tuple(volumes),
        share=str(found["share"]),
        name=str(found["name"]),
        labels=tuple((str(name), str(value)) for name, value in found["labels"].items()),
        python=found["python"],
        file=str(found["file"]),
    )


def run_words(wanted: WantedContainer, around: Around) -> List[str]:
    """All of it, after `docker`. What the user wrote comes after what it may change and before what it may not."""
    words = ["run", "--shm-size", around.shm, "--log-driver", "json-file", "--log-opt", "max-size=1m"]
    words += ["--no-healthcheck", "--stop-signal", "SIGTERM", "--stop-timeout", "%d" % (around.grace + 1)]
    for name, value in around.variables:
        words += ["-e", "%s=%s" % (name, value)]
    words += list(wanted.options)
    words += gpus(around.way, around.gpus)
    words += ["-d", "--rm=false", "--name", wanted.name]
    for name, value in wanted.labels + around.labels:
        words += ["--label", "%s=%s" % (name, value)]
    account = around.account
    words += identity(around.daemon, account.uid, account.gid, account.groups) + security(around.daemon)
    for each in around.mounts:
        words += mount(each.source, each.target, each.is_writable)
    words += ["--workdir", around.directory, "--entrypoint", around.entry[0], around.image]
    return words + list(around.entry[1:])


def identity(daemon: Daemon, uid: int, gid: int, groups: Sequence[int]) -> List[str]:
    """What is written in the container is this user's on the machine."""
    if daemon.is_podman and daemon.rootless:
        # Other groups have no number in there; crun leaves the process those that Podman itself has.
        others = ["--group-add", "keep-groups"] if set(groups) - {gid} else []
        return ["--userns=keep-id", "--user", "%d:%d" % (uid, gid)] + others
    if daemon.rootless:
        return ["--user", "0:0"]  # its root is this user; any other uid would be one that no user has
    words = ["--userns=host"] if daemon.remaps else []
    words += ["--user", "%d:%d" % (uid, gid)]
    for group in sorted(set(groups) - {gid}):
        words += ["--group-add", "%d" % group]
    return words


def inner_uid(daemon: Daemon, uid: int) -> int:
    """Which one it is for the script."""
    return 0 if daemon.rootless and not daemon.is_podman else uid


def security(daemon: Daemon) -> List[str]:
    """Folders of a home are labelled for the home, and are not to be labelled anew for a container."""
    return ["--security-opt", "label=disable"] if daemon.selinux else []


def mount(source: str, target: str, writable: bool) -> List[str]:
    """Never by `-v`, which makes a folder that is missing, as root."""
    fields = ["type=bind", "source=" + source, "target=" + target] + ([] if writable else ["readonly"])
    return ["--mount", ",".join(_field(each) for each in fields)]


def hidden(target: str) -> List[str]:
    """In the place of a folder of the machine that lies in a mounted one: an empty one, in memory."""
    return ["--mount", ",".join(_field(each) for each in ("type=tmpfs", "target=" + target))]


def gpus(way: str, devices: Optional[Sequence["GpuDevice"]] = None) -> List[str]:
    """All of them, or these and no others; none at all without a way, or where `devices` is empty."""
    if not way or (devices is not None and not devices):
        return ["-e", _VOID]
    uuids = None if devices is None else ",".join(each.uuid for each in devices)
    if way == HOOK:
        return ["--gpus", "all" if uuids is None else _field("device=" + uuids)]
    if way == CDI:
        names = [CDI_DEVICE] if devices is None else [CDI_DEVICE.replace("=all", "=" + each.cdi) for each in devices]
        # Where NVIDIA's runtime is the daemon's usual one, it would give an image that asks for all the others as well.
        # Newer specifications of CDI say this themselves.
        return [word for name in names for word in ("--device", name)] + ["-e", _VOID]
    return ["--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=%s" % (uuids or "all")]


def capabilities(way: str, environment: Dict[str, str]) -> List[Tuple[str, str]]:
    """Where the image does not say which parts of the driver it needs: what frameworks and `nvidia-smi` do."""
    return [(_CAPABILITIES, "compute,utility")] if way and not environment.get(_CAPABILITIES) else []


def is_for_gpus(environment: Dict[str, str]) -> bool:
    """Whether an image was made for them, by what it says to NVIDIA's tools."""
    visible = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    return bool(environment.get("CUDA_VERSION")) or visible not in ("", "void", "none")


def memory_limit(options: Sequence[str]) -> str:
    """What the user allows, as it is written; empty for no limit. The last word counts, as for Docker."""
    found = ""
    for place, word in enumerate(options):
        if word in ("--memory", "-m") and place + 1 < len(options):
            found = options[place + 1]
        elif word.startswith("--memory="):
            found = word.partition("=")[2]
    return found


def default_shm(memory: int) -> str:
    """Half of the machine's memory, which is what the system's own /dev/shm may take."""
    return "%d" % max(memory // 2, _SMALL_SHM)


def passwd_text(image: str, account: Account, uid: int, home: str) -> str:
    """The image's accounts with the user's in front: the first that fits is taken, by name and by number."""
    line = "%s:x:%d:%d:%s:%s:/bin/sh" % (account.name, uid, account.gid if uid else 0, account.name, home)
    return _in_front(line, image)


def group_text(image: str, account: Account, gid: int, name: str) -> str:
    return _in_front("%s:x:%d:%s" % (name, gid, account.name), image)


def _in_front(line: str, text: str) -> str:
    name = line.split(":", 1)[0]
    others = [each for each in text.splitlines() if each.strip() and each.split(":", 1)[0] != name]
    return "\n".join([line] + others) + "\n"


def _field(text: str) -> str:
    """Docker reads the word as a line of CSV."""
    if any(each in text for each in ',"\n\r'):
        return '"%s"' % text.replace('"', '""')
    return text
