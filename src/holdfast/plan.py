"""The plan of a run: everything that will be done on the host, as frozen data with named holes.

Fields are the keys of `plan.json`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from holdfast.farside.gpu.request import GpuRequest
from holdfast.frozen import dataclass
from holdfast.model import RECORD_FORMAT


class Hole(Enum):
    """What only the far side knows. `farside/system/bound_plan.py` fills these, and no others, when it binds a plan."""

    HOME = "home"
    RUN = "run"
    WORK = "work"
    FARSIDE = "farside"
    ENVIRONMENT = "environment"
    PATH = "path"
    PYTHONPATH = "pythonpath"
    PYTHON = "python"
    ACCOUNT = "account"
    ARCHITECTURE = "architecture"


@dataclass(frozen=True)
class Text:
    """A string of the plan made of literals and holes. Literals are never searched for holes: user text is safe."""

    parts: tuple[str | Hole, ...]

    def as_json(self) -> Any:
        if len(self.parts) == 1 and isinstance(self.parts[0], str):
            return self.parts[0]
        return {"join": [part if isinstance(part, str) else {"hole": part.value} for part in self.parts]}

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else f"<{part.value}>" for part in self.parts)


def text(*parts: str | Hole) -> Text:
    return Text(parts)


@dataclass(frozen=True)
class Command:
    """A command: argv, environment variables and working directory. The host adds the container. `python` is the
    interpreter whose packages the run uses; it need not be the first word."""

    argv: tuple[Text, ...]
    environment: Mapping[str, Text]
    directory: Text
    python: Text


@dataclass(frozen=True)
class Volume:
    """A folder or file of the host that the script finds at `target`."""

    source: Text
    target: str
    is_writable: bool


@dataclass(frozen=True)
class ContainerPlan:
    """The container in which the environment is built and the script runs.

    `image` is a name, or with `is_exact` an id that nothing may replace; `known_as` is its name for people;
    `is_default`: the target names none. `gpus` None: the target says nothing about them. `options` are words for
    `docker run` that the user's keys ask for; `shm` None leaves the size to the host. `share` is the path of
    `Plan.share` inside. `python` is the image's own, used as it is; None: an environment is mounted. `file` says where
    all this is written.
    """

    program: str
    image: str
    is_exact: bool
    known_as: str
    is_default: bool
    gpus: bool | None
    options: tuple[Text, ...]
    shm: str | None
    volumes: tuple[Volume, ...]
    share: str
    name: str
    labels: Mapping[str, str]
    python: str | None
    file: str


@dataclass(frozen=True)
class EnvironmentPlan:
    """An environment that the host finds, or resolves and builds.

    `spec` is the digest of what was asked for; `requirements`, `constraints` and `conda` are its lines, each with its
    file and line. `python` is a pin, `interpreter` the Python for a spec without one. `locks` are those known for the
    spec, from whichever machines; `exact`: what the first one has is wanted and nothing else. `files` is the folder of
    the spec's local files, `uv` the program, `tools` what has to be sent for it, `secrets` the names of variables for
    the installer alone.
    """

    spec: str
    summary: str
    python: str | None
    interpreter: Text
    requirements: tuple[tuple[str, str], ...]
    constraints: tuple[tuple[str, str], ...]
    options: tuple[str, ...]
    arguments: tuple[str, ...]
    channels: tuple[str, ...]
    conda: tuple[tuple[str, str], ...]
    locked: str
    locks: tuple[Mapping[str, Any], ...]
    exact: bool
    upgrade: bool
    rebuild: bool
    files: Text
    uv: Text
    tools: tuple[str, ...]
    secrets: tuple[str, ...]
    packages: str | None = None
    """The manifest of packages that are sent along; the host then asks no index."""
    projects: tuple[str, ...] = ()
    """Folders of the project, relative to it, whose packages the script imports from where they lie."""


DIRECT = "direct"


@dataclass(frozen=True)
class EnginePlan:
    """The engine that starts the run's supervisor and owns it: a name in `farside/engines/`."""

    name: str = DIRECT


@dataclass(frozen=True)
class RunLimits:
    grace: float = 10.0
    time: float | None = None


@dataclass(frozen=True)
class EarlierRun:
    """What the run goes on from: what the run `run` left at `path`, empty for all, in its folder on the host. Where it
    is not there: `folders` at home on the same disk, each with its path in the working folder, or the manifest of what
    was `sent`."""

    run: str
    project: str
    path: str = ""
    folders: tuple[tuple[Text, str], ...] = ()
    sent: str | None = None


@dataclass(frozen=True)
class DataFolder:
    """Data at `source` on the host, which the run finds at `target` in its working folder. `digest` names what was sent
    to the host; empty for what lies there anyway."""

    source: Text
    target: str
    digest: str = ""


@dataclass(frozen=True)
class Plan:
    """Everything the supervisor will do, printed by `--dry-run`. `run` and `project` are ids."""

    run: str
    project: str
    generation: str
    snapshot: str
    stores: tuple[Text, ...]
    share: Text
    command: Command | None
    """None: only the environment is prepared."""
    limits: RunLimits
    environment: EnvironmentPlan | None = None
    prepare: bool = True
    secrets: tuple[str, ...] = ()
    python: str | None = None
    """`pythonLocation` for the hole of that name. None: the host's active Python, or the image's own."""
    container: ContainerPlan | None = None
    """None: the script sees the host as its user does."""
    gpu: GpuRequest = GpuRequest()
    engine: EnginePlan = EnginePlan()
    earlier: EarlierRun | None = None
    """None: it begins with the snapshot's files alone."""
    data: tuple[DataFolder, ...] = ()
    place: str = ""
    """Where the project lies in the run's working tree: below its `work`, a few folders deep."""
    format: int = RECORD_FORMAT
