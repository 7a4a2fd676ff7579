"""The environment of a run as it is planned here: the spec, the locks that are known for it, and who builds it."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.environments.locks import Lock, locks_of, read_lock
from holdfast.environments.planning import Wishes, plan_environment
from holdfast.errors import ProjectError
from holdfast.history.folder import RunFolders
from holdfast.plan import EnvironmentPlan, Hole, Text, text
from holdfast.project.configuration import Configuration, managed_environment
from holdfast.project.environment_spec import EnvironmentSpec, spec_digest, variables_in
from holdfast.project.folder import Project
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.tools import find_uv, uv_name
from holdfast.workbench.surroundings import Surroundings

LOCK = "environment.json"
"""In a run's folder: the lock of what it ran in."""
EXPORTS = "exports"


def plan_environment_of(
    project: Project, configuration: Configuration, is_here: bool, wishes: Wishes, around: Surroundings
) -> EnvironmentPlan | None:
    """None: the run uses the user's own Python as it is."""
    spec = _spec(project, configuration, wishes)
    if spec is None:
        return None
    uv = find_uv()
    if spec.lock_file:
        from holdfast.environments.exporting import export_lock

        spec = export_lock(spec, project.root, uv, project.state_directory / EXPORTS)
    digest = spec_digest(spec, project.root)
    tools: tuple[str, ...] = () if is_here else (uv_name(uv),)
    program = text(uv) if is_here else text(Hole.HOME, f"/tools/{tools[0]}-", Hole.ARCHITECTURE, "/uv")
    python = _interpreter(project, configuration, is_here, around)
    locks = locks_of(project.state_directory, digest)
    plan = plan_environment(spec, digest, python, program, locks, wishes)
    return plan._replace(tools=tools, secrets=tuple(build_secrets(spec, around)))


def secrets_of(configuration: Configuration, around: Surroundings) -> Mapping[str, str]:
    """What the installer has to know and no file may: passwords out of addresses, variables that addresses name."""
    spec = managed_environment(configuration)
    return {} if spec is None else build_secrets(spec, around)


def build_secrets(spec: EnvironmentSpec, around: Surroundings) -> dict[str, str]:
    named = {name: around.environment[name] for name in variables_in(spec) if around.environment.get(name)}
    return {**named, **spec.credentials}


def lock_of_run(project: Project, run: str) -> Lock:
    """What another run ran in, for `--environment-of`."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    lock = read_lock(folders.path(run_id) / LOCK)
    if lock is None:
        raise ProjectError(
            f"The run `{run_id}` has no environment that could be used again.",
            "It ran on the user's own Python, or its record is not at home yet: holdfast experiment status -r "
            f"{run_id}",
        )
    return lock


def _spec(project: Project, configuration: Configuration, wishes: Wishes) -> EnvironmentSpec | None:
    spec = managed_environment(configuration)
    return EnvironmentSpec() if spec is None and wishes.exact is not None else spec


def _interpreter(project: Project, configuration: Configuration, is_here: bool, around: Surroundings) -> Text:
    if not is_here:
        return text(Hole.PYTHON)
    return text(find_python(configuration.target.python_location, project.root, around))
