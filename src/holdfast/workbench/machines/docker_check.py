"""Docker on a machine: what it is, what that means for runs, and a trial container that does what runs do."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from holdfast.codec import encode
from holdfast.containers import Docker, Names
from holdfast.errors import FarSideError, Unreachable
from holdfast.frozen import dataclass, replace
from holdfast.hosts.client import Client, Reply
from holdfast.hosts.connection import Connection
from holdfast.hosts.machine_report import DockerReport, GpuState, MachineFacts, Trial
from holdfast.project.compute import ComputeTarget
from holdfast.project.container_keys import DEFAULT_IMAGE
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.workbench.machines.machine_findings import MachineFinding, as_sentence, version_of
from holdfast.workbench.reach import events

LITTLE_ROOM, NO_ROOM = 5_000_000_000, 200_000_000
OLDEST = (18, 9)
"""Docker's version that knows all words that a container is started with, but for those about GPUs."""
SILENCE = 180.0
"""Seconds without a word of a far side that speaks every second while an image is fetched, and else waits for a
container at most this long."""
_WITHHELD = ("image-login", "image-unreachable")
"""The far side's words for an image that may well be had, with a login or from a machine with a network."""
_WAYS = {"hook": "by NVIDIA's hook (`--gpus`)", "cdi": "by CDI", "runtime": "by the runtime `nvidia`"}


@dataclass(frozen=True)
class Docked:
    """What a look at Docker found. `trial` None: the image is not there."""

    engine: DockerReport
    trial: Trial | None
    findings: tuple[MachineFinding, ...]

    @property
    def gives_gpus(self) -> bool:
        return self.trial is not None and bool(self.trial.gpus)


@dataclass(frozen=True)
class Wish:
    """What is to be tried: a container as runs of `target` have it. `attaches`: an image that is not there is fetched,
    and what the machine can give will be written."""

    target: ComputeTarget
    attaches: bool = False

    @property
    def image(self) -> str:
        return self.target.base_docker_image or DEFAULT_IMAGE

    @property
    def tried(self) -> ComputeTarget:
        """An attach was asked for. A check only looks: with the words of the project for Docker left out, its container
        has nothing but what is in the image."""
        return self.target if self.attaches else replace(self.target, docker_arguments=())

    @property
    def file(self) -> str:
        return self.target.file or ""

    @property
    def nvidia(self) -> bool | None:
        """`nvidiaDocker` as it is written, None where it is not."""
        return self.target.nvidia_docker


def examine(
    connection: Connection, name: str, facts: MachineFacts, wish: Wish
) -> Generator[events.Event, None, Docked]:
    """`name` is the host's, for people. Where no container could work there, an attach raises FarSideError, and a check
    has a finding that says so."""
    yield events.Doing(f"looking at Docker on {name} …")
    far = Client(connection)
    engine = far.docker()
    found = list(engine_findings(engine))
    if any(each.stops_runs for each in found):
        return Docked(engine, None, tuple(found))
    has_gpus = facts.gpus.state is GpuState.OK and bool(facts.gpus.devices)
    yield events.Doing(f"trying a container of {wish.image} on {name} …")
    container = encode(Docker(wish.tried).plan(Names("", "", "")))
    asked = far.docker_try(container, wish.attaches, has_gpus and wish.nvidia is not False)
    trial: Trial | None = None
    try:
        trial = yield from _spoken(connection, asked)
    except FarSideError as error:
        if error.kind in _WITHHELD or error.kind == "image-absent":
            found.append(_without_image(error, wish))
        elif wish.attaches:
            raise
        else:
            return Docked(engine, None, (MachineFinding(error.message, error.hint, True), *found))
    else:
        yield events.Done(f"A container on {name} writes to Holdfast's folder there, and its files are yours.")
        if trial.gpus:
            yield events.Done(f"{engine.title} gives containers the GPUs, {_WAYS.get(trial.gpus, trial.gpus)}.")
    found += gpu_findings(engine, trial, has_gpus, wish)
    return Docked(engine, trial, tuple(sorted(found, key=lambda each: not each.stops_runs)))


def engine_findings(engine: DockerReport) -> Iterator[MachineFinding]:
    if engine.kind == "docker" and version_of(engine.version) < OLDEST:
        yield MachineFinding(
            f"Docker {engine.version} is too old: containers are started with words that it does not know.",
            f"Its administrator has to install a newer one: {OLDEST[0]}.{OLDEST[1]:02} or later, better 23 or later.",
            stops_runs=True,
        )
    if engine.free is not None and engine.free < LITTLE_ROOM:
        yield MachineFinding(
            f"There is little room for images in `{engine.root}`: {format_size(engine.free)} free.",
            f"Remove what is not needed there: {engine.kind} image prune (unused layers), {engine.kind} system df "
            "shows what takes the room.",
            stops_runs=engine.free < NO_ROOM,
        )
    if engine.is_rootless and engine.lingers is False:
        yield MachineFinding(
            f"{engine.title} is the account's own there (rootless), and ends when `{engine.user}` logs out, with every "
            "container.",
            f"Over there, once: loginctl enable-linger (or, its administrator: sudo loginctl enable-linger "
            f"{pasted(engine.user)}).",
        )
    if engine.leftovers:
        names = [each.name for each in engine.leftovers]
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        yield MachineFinding(
            f"Containers of runs that are over are left there: {shown}.",
            f"Over there: {engine.kind} rm -f {' '.join(map(pasted, names))}. "
            "`holdfast experiment clean --all` removes them too.",
        )


def gpu_findings(engine: DockerReport, trial: Trial | None, has_gpus: bool, wish: Wish) -> Iterator[MachineFinding]:
    """Findings if containers cannot use the machine's GPUs, or if the target does not ask for them."""
    if wish.nvidia and not has_gpus:
        yield MachineFinding(
            f"`nvidiaDocker: true` in {wish.file} asks for GPUs, and the machine has none that works.",
            "Write `nvidiaDocker: false` there, or fix the machine's NVIDIA driver.",
            stops_runs=True,
        )
    if trial is None or not has_gpus or wish.nvidia is False:
        return
    if not trial.gpus:
        then = "Then write `nvidiaDocker: true`" if wish.nvidia is None else "Until then write `nvidiaDocker: false`"
        yield MachineFinding(
            as_sentence(f"The machine has GPUs, and {engine.title} cannot give them to a container: {trial.problem}"),
            f"{_toolkit(engine)} {then} into {wish.file}.",
            stops_runs=bool(wish.nvidia),
        )
    elif wish.nvidia is None and not wish.attaches:
        yield MachineFinding(
            "The machine has GPUs that containers could have; runs use the CPU.",
            f"Write `nvidiaDocker: true` into {wish.file}; `false` if that is meant.",
        )


def _toolkit(engine: DockerReport) -> str:
    install = "Over there: install the package nvidia-container-toolkit (from NVIDIA's repository), then"
    if engine.kind == "podman":
        return f"{install}: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    if engine.is_rootless:
        return (
            f"{install}: nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json && "
            "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place && "
            "systemctl --user restart docker"
        )
    return f"{install}: sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"


def _without_image(error: FarSideError, wish: Wish) -> MachineFinding:
    if error.kind == "image-absent":
        return MachineFinding(f"The image `{wish.image}` is not on the machine.", "The first run fetches it.")
    other = f"Or name another image in {wish.file} (`baseDockerImage`)."
    again = f"Then look again: holdfast computetarget check {pasted(wish.target.name)}"
    remedy = " ".join([*([as_sentence(error.hint)] if error.hint else []), other, again])
    return MachineFinding(f"{as_sentence(error.message)} No container could be tried.", remedy)


def _spoken(connection: Connection, asked: Reply[Trial]) -> Generator[events.Event, None, Trial]:
    """A request that takes long, and says meanwhile how far it is: each word of it, also what comes with the answer."""
    shown, is_here = "", False
    while not is_here:
        is_here = asked.is_here(0.2)
        while (push := connection.next_push(0)) is not None:
            if push.file and push.file != shown:
                shown = push.file
                yield events.Doing(f"{shown} …")
        if not is_here and connection.quiet() > SILENCE:
            raise Unreachable("Nothing is heard from the machine any more.", "The same command again.")
    return asked.wait()
