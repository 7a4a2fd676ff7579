"""The environment of a run as it is planned here: the spec, the locks that are known for it, and who builds it. A host
is asked about environments by the same plans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.codec import encode
from holdfast.containers import Exact, Names
from holdfast.environments.environment_plan import Wishes, locks_of, plan_environment, read_lock, summary_of
from holdfast.errors import HoldfastError, ProjectError, StateError
from holdfast.frozen import replace
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.host import Host
from holdfast.model import IMPORTED, Reason, Run
from holdfast.plan import EnvironmentPlan, Hole, Text, text
from holdfast.project.compute import CONTAINER_TYPES
from holdfast.project.configuration import Configuration
from holdfast.project.environment_spec import EnvironmentSpec, spec_digest, variables_in
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import container_of, host_of
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.tools import find_uv, uv_name

LOCK = "environment.json"
"""In a run's folder: the lock of what it ran in."""
_EXPORTS = "exports"
_IMAGE_ID = r"sha256:[0-9a-f]{64}"
"""A host says which image a run had: anything else could be the name of another image here."""
_UNPINNED = "not pinned"
"""Which Python a container gets then: its image's own, or one that is brought."""


def plan_environment_of(
    project: Project, configuration: Configuration, is_here: bool, wishes: Wishes, context: Context
) -> EnvironmentPlan | None:
    """None: the run uses the user's own Python as it is. `is_here`: it finds the programs that are found here."""
    spec = exported_spec(project, configuration.environment)
    if spec is None:
        return None
    digest = spec_digest(spec, project.root)
    program, tools = _program(is_here)
    python = _interpreter(project, configuration, is_here, context)
    locks = locks_of(project.state_directory, digest)
    plan = plan_environment(spec, digest, python, program, locks, wishes)
    if configuration.target.type in CONTAINER_TYPES:
        plan = replace(plan, summary=summary_of(spec, _UNPINNED))
    return replace(plan, tools=tools, secrets=tuple(_build_secrets(spec, context)))


def exported_spec(project: Project, spec: EnvironmentSpec | None) -> EnvironmentSpec | None:
    """The spec with the contents of its `uv.lock`; unchanged if it has none."""
    if spec is None or not spec.lock_file:
        return spec
    from holdfast.environments.uv_export import export_lock

    return export_lock(spec, project.root, find_uv(), project.state_directory / _EXPORTS, project.home)


def secrets_of(configuration: Configuration, context: Context) -> Mapping[str, str]:
    """What the installer needs and no file may hold: passwords from addresses, and variables that addresses name."""
    spec = configuration.environment
    return {} if spec is None else _build_secrets(spec, context)


def _build_secrets(spec: EnvironmentSpec, context: Context) -> dict[str, str]:
    named = {name: context.environment[name] for name in variables_in(spec) if context.environment.get(name)}
    return {**named, **spec.credentials}


def plan_environment_of_run(
    project: Project, run: str, configuration: Configuration, is_here: bool, rebuild: bool, context: Context
) -> EnvironmentPlan | None:
    """What another run ran in, for `--environment-of`: its packages, and the indexes that they came from. None: what it
    ran in was its image and nothing else, and so will this one."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    _require_own_word(folders, run_id, configuration, context)
    if configuration.target.type in CONTAINER_TYPES:
        image = image_of_run(project, run_id)
        if image is not None and image.python is not None:
            return None
    lock = read_lock(folders.path(run_id) / LOCK)
    before = folders.plan(run_id).get("environment")
    if lock is None or not isinstance(before, dict) or lock["spec"] != before.get("spec"):
        raise _why_not(read_run(folders, run_id), isinstance(before, dict), configuration)
    python, (program, tools) = _interpreter(project, configuration, is_here, context), _program(is_here)
    spec = EnvironmentSpec(locked=str(before.get("locked") or ""))
    return replace(
        plan_environment(spec, lock["spec"], python, program, (), Wishes(lock, False, rebuild)),
        tools=tools,
        summary=str(before.get("summary", "")),
        requirements=_pairs(before.get("requirements")),
        constraints=_pairs(before.get("constraints")),
        options=_texts(before.get("options")),
        arguments=_texts(before.get("arguments")),
        channels=_texts(before.get("channels")),
        conda=_pairs(before.get("conda")),
        secrets=tuple(secrets_of_run(project, run_id, configuration, context)),
        projects=_texts(before.get("projects")),
    )


def _why_not(run: Run, had_one: bool, configuration: Configuration) -> HoldfastError:
    """Why the environment of a run cannot be used again; `had_one`: its plan has one."""
    if run.ending is not None and run.ending.reason is Reason.PREPARATION:
        return StateError(
            f"The run `{run.run_id}` has no environment that could be used again. {run.ending.sentence()}",
            run.remedy(),
        )
    if run.image and not had_one and configuration.target.type not in CONTAINER_TYPES:
        return ProjectError(
            f"The run `{run.run_id}` ran on the Python of its image {run.image}, and the target "
            f"`{configuration.target.name}` has no container.",
            f"Name the target that it ran on, or another one with containers: -t {pasted(run.submission.target)}",
        )
    return _nothing_to_use_again(run.run_id)


def _require_own_word(folders: RunFolders, run_id: str, configuration: Configuration, context: Context) -> None:
    """What an imported run asked for is known from its host alone, so it counts on that host and on no other."""
    if _is_imported(folders, run_id) and folders.host_name(run_id) != host_of(configuration.target, context).name:
        target = folders.submission(run_id).target
        raise StateError(
            f"The run `{run_id}` was imported: only `{target}` says what its environment is, and the target "
            f"`{configuration.target.name}` is another machine.",
            f"Submit there: -t {pasted(target)}. Or submit without --environment-of, with the project's own packages.",
        )


def _is_imported(folders: RunFolders, run_id: str) -> bool:
    return IMPORTED in folders.submission(run_id).properties


def image_of_run(project: Project, run: str) -> Exact | None:
    """The image that another run ran in; None where it ran in none."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    before = folders.plan(run_id).get("container")
    if not isinstance(before, dict):
        return None
    record = read_run(folders, run_id)
    if record.image_id is None or not re.fullmatch(_IMAGE_ID, record.image_id, re.ASCII):
        raise _nothing_to_use_again(run_id)
    python = before.get("python")
    return Exact(record.image_id, record.image or record.image_id, python if isinstance(python, str) else None)


def planned_environment(
    project: Project, configuration: Configuration, host: Host, context: Context
) -> dict[str, Any] | None:
    """The environment in the plan; None if the run uses the user's own Python."""
    is_here = host.is_here and configuration.target.type not in CONTAINER_TYPES
    plan = plan_environment_of(project, configuration, is_here, Wishes(), context)
    found: dict[str, Any] | None = encode(plan)
    return found


def planned_container(project: Project, configuration: Configuration) -> dict[str, Any] | None:
    """The container in the plan; None if the target has none."""
    plan = container_of(configuration.target).plan(Names("", project.id, project.name))
    found: dict[str, Any] | None = encode(plan)
    return found


def _nothing_to_use_again(run_id: str) -> StateError:
    return StateError(
        f"The run `{run_id}` has no environment that could be used again.",
        "It ran on the user's own Python, or its record is not at home yet: "
        f"holdfast experiment status -r {pasted(run_id)}",
    )


def secrets_of_run(project: Project, run: str, configuration: Configuration, context: Context) -> Mapping[str, str]:
    """As `secrets_of`, for the environment of an earlier run. Those whose values are not known here are left out. Which
    variables an imported run wants is its host's word: it gets those that the project's own files name."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    before = folders.plan(run_id).get("environment")
    if not isinstance(before, dict):
        return {}
    found = _secrets_of_plan(before, configuration, context)
    own = secrets_of(configuration, context) if _is_imported(folders, run_id) else found
    return {name: value for name, value in found.items() if name in own}


def _secrets_of_plan(before: Mapping[str, Any], configuration: Configuration, context: Context) -> Mapping[str, str]:
    known = {**context.environment, **secrets_of(configuration, context)}
    return {name: known[name] for name in _texts(before.get("secrets")) if known.get(name)}


def _pairs(value: Any) -> tuple[tuple[str, str], ...]:
    found = value if isinstance(value, list) else ()
    return tuple((str(each[0]), str(each[1])) for each in found if isinstance(each, list) and len(each) == 2)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _program(is_here: bool) -> tuple[Text, tuple[str, ...]]:
    """The installer as the plan names it, and what has to be sent for it."""
    uv = find_uv()
    if is_here:
        return text(uv), ()
    name = uv_name(uv)
    return text(Hole.HOME, f"/tools/{name}-", Hole.ARCHITECTURE, "/uv"), (name,)


def _interpreter(project: Project, configuration: Configuration, is_here: bool, context: Context) -> Text:
    if not is_here:
        return text(Hole.PYTHON)
    return text(find_python(configuration.target.python_location, project.root, context))
