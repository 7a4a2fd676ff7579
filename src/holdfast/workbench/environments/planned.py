"""Which environment a run configuration means, and in which container, as its host is asked about it: the plans that a
run would have."""

from __future__ import annotations

from typing import Any

from holdfast.codec import encode
from holdfast.containers import Names
from holdfast.environments.environment_plan import Wishes
from holdfast.hosts.host import Host
from holdfast.project.compute import CONTAINER_TYPES
from holdfast.project.configuration import Configuration
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import container_of
from holdfast.workbench.submitting.environment_choice import plan_environment_of


def planned_environment(
    project: Project, configuration: Configuration, host: Host, context: Context
) -> dict[str, Any] | None:
    """None: the user's own Python."""
    is_here = host.is_here and configuration.target.type not in CONTAINER_TYPES
    plan = plan_environment_of(project, configuration, is_here, Wishes(), context)
    found: dict[str, Any] | None = encode(plan)
    return found


def planned_container(project: Project, configuration: Configuration) -> dict[str, Any] | None:
    """None: there is none."""
    plan = container_of(configuration.target).plan(Names("", project.id, project.name))
    found: dict[str, Any] | None = encode(plan)
    return found
