"""What the script's process sees: the host (`Bare`) or an image (`Docker`). Here it is only described, as data; the far
side puts the container around the commands, those that build the environment and the script's alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.frozen import dataclass
from holdfast.plan import ContainerPlan, Hole, Volume, text
from holdfast.project.compute import ComputeTarget

if TYPE_CHECKING:
    from holdfast.project.container_keys import VolumeLine


@dataclass(frozen=True)
class Names:
    """What a container is called after."""

    run_id: str
    project_id: str
    project_name: str


@dataclass(frozen=True)
class Exact:
    """An image that a run has used: its id, the name it had, and the Python that the run took from it, if it did."""

    image: str
    known_as: str
    python: str | None


class Container(Protocol):
    """The seam."""

    def plan(self, names: Names, exact: Exact | None = None, gpus: int | str | None = None) -> ContainerPlan | None:
        """The container of a run; None: there is none, and the script sees the host as its user does. `exact` takes
        the place of the image that the target names, and `gpus`, how many the run is to have, that of what the target
        says about them. Pure: starts nothing and looks at nothing."""
        ...

    @property
    def has_image(self) -> bool:
        """Whether what the script sees is an image's: its Python, its programs."""
        ...


class Bare:
    """No container: the script sees the host as its user does."""

    has_image = False

    def plan(self, names: Names, exact: Exact | None = None, gpus: int | str | None = None) -> ContainerPlan | None:
        return None


class Docker:
    """A Docker container, on any host, by the keys of a compute target."""

    has_image = True

    def __init__(self, target: ComputeTarget) -> None:
        self._target = target

    def plan(self, names: Names, exact: Exact | None = None, gpus: int | str | None = None) -> ContainerPlan:
        from holdfast.project import container_keys  # most targets have no container

        target = self._target
        named = target.base_docker_image or container_keys.DEFAULT_IMAGE
        own_python = (target.python_location or "python3") if target.user_managed_environment else None
        # By default the network is the machine's own: ports are open, and other machines are reached as without Docker.
        words = ["--network", target.network or container_keys.DEFAULT_NETWORK]
        words += ["--memory", target.memory] if target.memory is not None else []
        words += ["--cpus", target.cpus] if target.cpus is not None else []
        volumes = map(container_keys.parse_volume, target.volumes)  # those with a mistake were refused with the file
        return ContainerPlan(
            program="docker",
            image=exact.image if exact else named,
            is_exact=exact is not None,
            known_as=exact.known_as if exact else named,
            is_default=not target.base_docker_image,
            gpus=target.nvidia_docker if gpus is None else gpus != 0,
            options=tuple(text(word) for word in (*words, *target.docker_arguments)),
            shm=target.shm_size,
            volumes=tuple(_volume(each) for each in volumes if isinstance(each, container_keys.VolumeLine)),
            share=container_keys.SHARE,
            name=f"holdfast-{names.run_id}-{names.project_id[:6]}",  # projects of one name may share a daemon
            labels={
                "holdfast.run": names.run_id,
                "holdfast.project": names.project_id,
                "holdfast.project-name": names.project_name,
            },
            python=exact.python if exact else own_python,
            file=target.file or "",
        )


def _volume(line: VolumeLine) -> Volume:
    path = line.source
    source = text(Hole.ACCOUNT, path[1:]) if path.startswith("~/") else text(path)
    return Volume(source, line.target, line.is_writable)
