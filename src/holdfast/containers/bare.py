"""No container: the script sees the host as its user does."""

from __future__ import annotations

from holdfast.containers.container import Exact, Names
from holdfast.plan import ContainerPlan


class Bare:
    has_image = False

    def plan(self, names: Names, exact: Exact | None = None, gpus: int | str | None = None) -> ContainerPlan | None:
        return None
