"""Images: found on this host or fetched, what is known of one before anything runs in it, and its inside as a place
where an environment is used.

What Docker does not say about an image (its C library, its Pythons, its accounts) comes from one look inside, with the
image's own shell; it is kept by the image's id, which never means anything else.
"""

import json
import os
import posixpath
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.docker_errors import DOCKER, NO_ROOM, explain
from holdfast.farside.containers.image_probe import Probed, is_of_environment, look
from holdfast.farside.containers.pull import UNKNOWN, pull
from holdfast.farside.environments.place import CONDA, BuildPlace, Interpreter, brought, choose, is_of
from holdfast.farside.environments.platforms import platform_name
from holdfast.farside.environments.workshop import Supervision
from holdfast.farside.machine.pythons import version_by_place
from holdfast.farside.system import foreign
from holdfast.farside.system.files import read_json, write_whole
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.layout import CONTROL, Home
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.refusal import Refused

_KEY = "baseDockerImage"
_ANY = ("", "python", "python3")
"""Names for whichever Python an image has."""
FORMAT = 1
PATIENCE = 60.0
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "arm": "armv7l", "mips64le": "mips64"}
"""What Go calls an architecture, and what the kernel calls it."""


class Python(NamedTuple):
    """One in an image: its path as it was found, its version in full, and the file that it leads to."""

    path: str
    version: str
    real: str


class Image(NamedTuple):
    """`id` as `sha256:…`; `architecture` in the kernel's words; `platform` as in a lock; `environment` is its `ENV`;
    `passwd` and `group` are the texts of its files."""

    id: str
    name: str
    architecture: str
    platform: str
    environment: Dict[str, str]
    pythons: Tuple[Python, ...]
    passwd: str
    group: str

    @property
    def short(self) -> str:
        """Enough of the id to tell images apart, fit for a name."""
        return self.id.rpartition(":")[2][:12]

    @property
    def path(self) -> str:
        """Where programs are looked for in it."""
        return self.environment.get("PATH") or _DEFAULT_PATH

    @property
    def build_name(self) -> str:
        """Which build of a program runs in it, as `x86_64-glibc`."""
        return "%s-%s" % (self.architecture, "musl" if self.platform.endswith("-musl") else "glibc")

    def python(self, asked: Optional[str]) -> Optional[str]:
        """The path of the Python that is meant: by its name or path, else the first that its PATH finds. None: it has
        no such one; a path that was not looked at is taken as it is."""
        if asked and "/" in asked:
            return posixpath.normpath(asked)
        if (asked or "") not in _ANY:
            return next((each.path for each in self.pythons if posixpath.basename(each.path) == asked), None)
        return self.pythons[0].path if self.pythons else None


class Described(NamedTuple):
    """What Docker itself says of an image: `os` and `architecture` in its own words."""

    id: str
    os: str
    architecture: str
    environment: Dict[str, str]


def find(docker: DockerClient, container: Dict[str, Any], home: Home, owner: Optional[Supervision]) -> Image:
    """The image of a plan, fetched if need be. `owner` is what the supervisor lends; without one nothing is fetched.
    Raises Refused with file, key and remedy."""
    try:
        described = inspect(docker, str(container["image"]))
    except Refused as refusal:
        raise _refused(container, refusal.message, refusal.hint) if refusal.kind == UNKNOWN else refusal
    if described is None:
        described = _fetched(docker, container, owner)
    name = str(container.get("known_as") or container["image"])
    _require_fitting(described, name, container)
    try:
        probed = _known(docker, described, home)
    except Refused as refusal:
        raise _refused(container, refusal.message.replace(described.id, name), refusal.hint)
    return _image(described, name, probed)


def inspect(docker: DockerClient, name: str) -> Optional[Described]:
    """None where it is not on this host."""
    answer = docker.call(["image", "inspect", name], PATIENCE)
    if not answer.is_good:
        said = (answer.errors + answer.output).lower()
        if "no such image" in said or "image not known" in said:
            return None
        if "invalid reference format" in said:
            raise Refused(UNKNOWN, "`%s` is not the name of an image." % name)
        raise explain(answer)
    try:
        return _described(foreign.parsed(answer.output)[0])
    except (ValueError, LookupError, TypeError, AttributeError):
        raise Refused(DOCKER, "Docker describes the image `%s` in a way that is not understood." % name)


def _described(row: Dict[str, Any]) -> Described:
    config = row.get("Config") or {}
    name = str(row["Id"])
    return Described(
        id=name if ":" in name else "sha256:" + name,  # Podman has it without
        os=str(row.get("Os") or "linux").lower(),
        architecture=str(row.get("Architecture") or ""),
        environment=dict(each.partition("=")[::2] for each in config.get("Env") or [] if "=" in each),
    )


def _fetched(docker: DockerClient, container: Dict[str, Any], owner: Optional[Supervision]) -> Described:
    name = str(container["image"])
    if container.get("is_exact"):
        message = "The image %s (`%s`), in which the other run ran, is not on the machine any more."
        shown = message % (name[:19], container.get("known_as") or "without a name")
        raise _refused(container, shown, "Submit without --environment-of, or bring that very image: docker load")
    if owner is None:
        remedy = "Fetch it, on the machine: docker pull %s" % pasted(name)
        raise _refused(container, "The image `%s` is not on the machine yet." % name, remedy)
    _pull(docker, container, owner)
    found = inspect(docker, name)
    if found is None:
        raise _refused(container, "The image `%s` was fetched, and is gone again." % name, "Submit again.")
    return found


def _pull(docker: DockerClient, container: Dict[str, Any], owner: Supervision) -> None:
    def tell(text: str) -> None:
        owner.tell("phase", name="image", text=text)

    name, log = str(container["image"]), os.path.join(owner.folder, CONTROL)
    _write(log, "$ docker pull %s" % pasted(name))
    try:
        pull(docker, name, tell, lambda line: _write(log, line))
    except Refused as refusal:
        kind = "storage" if refusal.kind == NO_ROOM else DOCKER
        raise _refused(container, refusal.message, refusal.hint, kind)


def _write(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8", errors="replace") as target:
        target.write(line + "\n")


def _require_fitting(described: Described, name: str, container: Dict[str, Any]) -> None:
    ours = os.uname().machine
    if described.os != "linux":
        message = "The image `%s` is for %s, and the machine runs Linux." % (name, described.os.capitalize())
        raise _refused(container, message, "Choose an image for Linux.")
    theirs = machine(described.architecture)
    is_close = theirs.startswith("arm") and ours.startswith("arm")
    if theirs and theirs != ours and not is_close:
        message = "The image `%s` is for %s, and the machine is %s." % (name, theirs, ours)
        raise _refused(container, message, "Choose one for %s, or one for several architectures." % ours)


def machine(architecture: str) -> str:
    """`x86_64` of `amd64`."""
    return _MACHINES.get(architecture, architecture)


def _refused(container: Dict[str, Any], message: str, remedy: str = "", kind: str = DOCKER) -> Refused:
    """With where the image is named, or could be. That of another run is named by that run alone."""
    where = ""
    if container["file"] and container.get("is_default") and not container.get("is_exact"):
        where = " It is the default image: %s has no `%s`." % (container["file"], _KEY)
    elif container["file"] and not container.get("is_exact"):
        where = " It is named in %s under `%s`." % (container["file"], _KEY)
    return Refused(kind, "%s%s%s" % (message, where, " " + remedy if remedy else ""))


def _known(docker: DockerClient, described: Described, home: Home) -> Probed:
    """What a look inside has told; an image is looked into once."""
    folder = os.path.join(home.path, "images")
    path = os.path.join(folder, described.id.rpartition(":")[2] + ".json")
    known = _read(path)
    if known is not None:
        return known
    found = look(docker, described.id, home)
    make_private(folder)
    write_whole(path, json.dumps(dict(found._asdict(), format=FORMAT)))
    return found


def _read(path: str) -> Optional[Probed]:
    rows = read_json(path) or {}
    try:
        return Probed(**rows) if rows.pop("format", None) == FORMAT else None
    except TypeError:
        return None


def _image(described: Described, name: str, probed: Probed) -> Image:
    architecture = machine(described.architecture) or os.uname().machine
    return Image(
        id=described.id,
        name=name,
        architecture=architecture,
        platform="linux-%s-%s" % (architecture, probed.libc),
        environment=described.environment,
        pythons=tuple(Python(*each) for each in probed.pythons),
        passwd=probed.passwd,
        group=probed.group,
    )


class InImage(BuildPlace):
    """Environments made with a Python of the image are for this image alone; those with one that uv brought, or with
    one out of conda's channels, for all images and machines of the same platform."""

    def __init__(self, image: Image, home: Home) -> None:
        self.home, self.image = home, image
        self.platform = image.platform
        self.tag = image.short
        self.words = "the image `%s`" % image.name
        if self.platform != platform_name():
            self.cache = "uv-" + self.platform

    def pythons(self) -> List[Interpreter]:
        return [Interpreter(each.path, each.version) for each in self.image.pythons] + self.brought()

    def choose(self, pin: str, found: List[Interpreter]) -> Optional[Interpreter]:
        """The image's own where one fits: it is what the image was made for."""
        ours = [each for each in found if not self._is_brought(each.path)]
        return choose(pin, ours) or choose(pin, found)

    def brought(self) -> List[Interpreter]:
        known = [(path, version_by_place(path)) for path in brought(self.home, self.image.build_name)]
        return [Interpreter(path, version) for path, version in known if version]

    def own(self, path: str) -> Optional[Interpreter]:
        """The image's first, or the one that is named; where it has none, the newest that was brought."""
        wanted = self.image.python(path)
        for each in self.image.pythons:
            if each.path == wanted:
                return Interpreter(each.path, each.version)
        return choose("3", self.brought()) if self.has_none(path) else None

    def has_none(self, path: str) -> bool:
        return path in _ANY and not self.image.pythons

    def active(self, path: str) -> List[Interpreter]:
        return []  # all that the image has are known

    def identity(self, path: str) -> str:
        if self._is_brought(path):
            return real_path(path)
        real = [each.real for each in self.image.pythons if each.path == path]
        return "%s:%s" % (self.image.id, path if is_of_environment(path) else (real + [path])[0])

    def noted_as(self, pin: str, path: str) -> str:
        """Which Python a pin becomes depends on the image."""
        return "%s\n%s" % (self.image.id, pin or self.image.python(path) or path)

    def about(self, interpreter: str) -> Dict[str, str]:
        if interpreter == CONDA or self._is_brought(interpreter):
            return {}
        return {"image": self.image.id, "image_name": self.image.name}

    def can_use(self, mark: Dict[str, Any]) -> bool:
        if not is_of(mark, self.tag):
            return False
        if mark.get("image"):
            return bool(mark["image"] == self.image.id)
        interpreter = str(mark.get("interpreter", ""))
        return interpreter == CONDA or self._is_brought(interpreter)

    def _is_brought(self, path: str) -> bool:
        return path.startswith(self.home.pythons() + os.sep)


def place_asked(home: Home, container: Dict[str, Any]) -> BuildPlace:
    """The inside of its image. One that is not here is not fetched."""
    return InImage(find(DockerClient(str(container["program"])), container, home, None), home)
