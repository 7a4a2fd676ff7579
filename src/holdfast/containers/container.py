"""The seam: what the script's process sees. The near side only says it; the far side puts the container around the
commands, those that build the environment and the script's alike."""

from __future__ import annotations

from typing import Protocol

from holdfast.frozen import dataclass
from holdfast.plan import ContainerPlan


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
    def plan(self, names: Names, exact: Exact | None = None, gpus: int | str | None = None) -> ContainerPlan | None:
        """The container of a run; None: there is none, and the script sees the host as its user does. `exact` takes
        the place of the image that the target names, and `gpus`, how many the run is to have, that of what the target
        says about them. Pure: starts nothing and looks at nothing."""
        ...

    @property
    def has_image(self) -> bool:
        """Whether what the script sees is an image's: its Python, its programs."""
        ...
