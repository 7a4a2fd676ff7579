"""A Docker container, on whatever host: from a compute target to what its far side needs to know."""

from __future__ import annotations

from holdfast.containers.container import Exact, Names
from holdfast.plan import ContainerPlan, Hole, Text, Volume, text
from holdfast.project.compute import ComputeTarget
from holdfast.project.container_keys import DEFAULT_IMAGE, DEFAULT_NETWORK, SHARE, VolumeLine, parse_volume

PROGRAM = "docker"
IMAGES_PYTHON = "python3"


class Docker:
    has_image = True

    def __init__(self, target: ComputeTarget) -> None:
        self._target = target

    def plan(self, names: Names, exact: Exact | None = None, gpus: int | str | None = None) -> ContainerPlan:
        target = self._target
        named = target.base_docker_image or DEFAULT_IMAGE
        own_python = (target.python_location or IMAGES_PYTHON) if target.user_managed_environment else None
        return ContainerPlan(
            program=PROGRAM,
            image=exact.image if exact else named,
            is_exact=exact is not None,
            known_as=exact.known_as if exact else named,
            is_default=not target.base_docker_image,
            gpus=target.nvidia_docker if gpus is None else gpus != 0,
            options=tuple(text(word) for word in _options(target)),
            shm=target.shm_size,
            volumes=_volumes(target),
            share=SHARE,
            name=f"holdfast-{names.run_id}-{names.project_id[:6]}",  # projects of one name may share a daemon
            labels={
                "holdfast.run": names.run_id,
                "holdfast.project": names.project_id,
                "holdfast.project-name": names.project_name,
            },
            python=exact.python if exact else own_python,
            file=target.file or "",
        )


def _options(target: ComputeTarget) -> list[str]:
    """The network is the machine's own by default: ports are open and other machines are reached as without one."""
    words = ["--network", target.network or DEFAULT_NETWORK]
    words += ["--memory", target.memory] if target.memory is not None else []
    words += ["--cpus", target.cpus] if target.cpus is not None else []
    return [*words, *target.docker_arguments]


def _volumes(target: ComputeTarget) -> tuple[Volume, ...]:
    """Lines with a mistake were refused when the file was read."""
    lines = [found for found in map(parse_volume, target.volumes) if isinstance(found, VolumeLine)]
    return tuple(Volume(_source(each.source), each.target, each.is_writable) for each in lines)


def _source(path: str) -> Text:
    return text(Hole.ACCOUNT, path[1:]) if path.startswith("~/") else text(path)
