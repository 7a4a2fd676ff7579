"""Which environment a run configuration means, as its host is asked about it: the plan that a run would have."""

from __future__ import annotations

from typing import Any

from holdfast.environments.planning import Wishes
from holdfast.hosts.host import Host
from holdfast.plan import environment_json
from holdfast.project.configuration import Configuration
from holdfast.project.folder import Project
from holdfast.workbench.submitting.environment import plan_environment_of
from holdfast.workbench.surroundings import Surroundings


def planned_environment(
    project: Project, configuration: Configuration, host: Host, around: Surroundings
) -> dict[str, Any] | None:
    """None: the user's own Python."""
    plan = plan_environment_of(project, configuration, host.is_here, Wishes(), around)
    return None if plan is None else environment_json(plan)
