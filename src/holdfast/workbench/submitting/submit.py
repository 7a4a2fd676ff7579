"""Submitting a run: read what was asked for, begin to reach the host, then launch.

The far side takes a while to start, so it is started as soon as the target is known, and the rest of the client, in
`launch.py`, is loaded meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.frozen import replace
from holdfast.installed_programs import find_program
from holdfast.project.compute import SUFFIX as TARGET_SUFFIX
from holdfast.project.configuration import Configuration, lacks_environment_file, load_configuration
from holdfast.project.folder import (
    BUILTIN,
    CONFIGURATION_FOLDER,
    Project,
    ensure_identity,
    ensure_state_directory,
    require_state_directory,
)
from holdfast.project.runconfig import CONDA_FILE
from holdfast.shown_text import pasted
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import product_of
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.job import Job, find_job, not_found
from holdfast.workbench.submitting.named_file import PYTHONS
from holdfast.workbench.submitting.run_plan import (
    Intent,
    asked_gpus,
    require_environment,
    secret_values,
    wanted_secrets,
)
from holdfast.workbench.submitting.submit_request import SubmitRequest
from holdfast.workbench.submitting.variables import recorded_secrets

if TYPE_CHECKING:
    from holdfast.workbench.submitting.early_login import Ahead


_NO_ID_YET = "<project>"


def dry_run(project: Project, request: SubmitRequest, context: Context) -> Iterator[events.Event]:
    """Everything up to the plan. Names the snapshot, as the plan does; starts, records and writes nothing."""
    from holdfast.workbench.submitting.launch import rehearse

    looking = replace(context, only_looks=True)
    yield from rehearse(_read(project, request, looking), looking)


def submit(
    project: Project, request: SubmitRequest, context: Context, wait: bool = True, ahead: Ahead | None = None
) -> Iterator[events.Event]:
    """Start a run and, if `wait`, follow it to its end. After `RunStarted` the run does not need this process. `ahead`:
    a connection that was begun before; it is used if it leads to the run's host."""
    intent = _read(project, request, context)
    values = {
        **_build_secrets(intent, context),
        **secret_values(wanted_secrets(request, intent.configuration), intent.job, context),
    }
    yield from _news(intent, bool(project.id))
    host = intent.product.host
    with (ahead.take(host) if ahead else None) or host.connect() as connection:
        from holdfast.workbench.submitting.launch import launch

        yield from launch(intent, connection, values, context, wait)


def _build_secrets(intent: Intent, context: Context) -> Mapping[str, str]:
    of_run = intent.request.environment.of_run
    if intent.configuration.environment is None and of_run is None:
        return {}
    from holdfast.workbench.submitting.environment_choice import secrets_of, secrets_of_run

    if of_run is not None:
        return secrets_of_run(intent.project, of_run, intent.configuration, context)
    return secrets_of(intent.configuration, context)


def _news(intent: Intent, was_known: bool) -> Iterator[events.Event]:
    """Notes before the run that are neither errors nor warnings."""
    root = intent.project.root
    if not was_known and intent.job.folder:
        yield events.Noted(
            f"This folder belongs to the project `{root}`, which ships as a whole. To make it a project of its own: "
            f"mkdir {CONFIGURATION_FOLDER}"
        )
    request = intent.request
    is_file = bool(request.arguments and intent.job.script) and not request.arguments[0].startswith("-")
    if is_file and request.script in PYTHONS and not request.how.is_program:
        yield events.Noted(f"`{request.script}` can be left out: holdfast submit {pasted(request.arguments[0])} …")
    for name in recorded_secrets(request.how.variables):
        yield events.Warned(f"The value of `{name}` is in the run's record. To keep it out: --secret {pasted(name)}")
    target, run = intent.configuration.target, intent.configuration.run
    hidden = intent.project.configuration_folders.hidden(target.name, TARGET_SUFFIX)
    if hidden is not None:
        yield events.Noted(f"The target `{target.name}` is this project's, in {target.file}, not yours in {hidden}.")
    if lacks_environment_file(intent.project, run, target) and intent.request.environment.of_run is None:
        yield events.Noted(_about_no_packages(intent.project))
    if intent.request.environment.of_run is not None and not intent.product.container.has_image:
        yield from _about_no_image(intent, intent.request.environment.of_run)
    is_own = target.user_managed_environment and intent.request.environment.of_run is None
    if is_own and os.path.exists(root / run.conda_dependencies_file):
        has_image = intent.product.container.has_image
        whose = "the image's" if has_image else "your"
        what = f"The target `{target.name}` runs on {whose} own Python, so {run.conda_dependencies_file} is not used"
        if intent.product.host.is_here or has_image:
            setting = f"`userManagedEnvironment: false` in {target.file}" if target.file else _OF_BUILTIN
            yield events.Noted(f"{what}; {setting} would build it.")
        else:
            yield events.Noted(f"{what}: its packages have to be in the Python over there (`pythonLocation`).")


_OF_BUILTIN = (
    f"`type: local` and `userManagedEnvironment: false`, as two lines of {CONFIGURATION_FOLDER}/{BUILTIN}.compute,"
)


def _about_no_image(intent: Intent, of_run: str) -> Iterator[events.Event]:
    """A user who wants the environment of a run may think that its image is a part of that."""
    from holdfast.workbench.submitting.environment_choice import image_of_run

    image, target = image_of_run(intent.project, of_run), intent.configuration.target
    if image is not None:
        yield events.Noted(
            f"The other run was in a container of the image {image.known_as}; the target `{target.name}` has no "
            "container, so only the packages are the same. To have the image too, name a docker target with -t."
        )


def _about_no_packages(project: Project) -> str:
    """A user who has a list of packages elsewhere may think that it is used."""
    names = ("requirements.txt", "pyproject.toml", "uv.lock", "environment.yml")
    other = next((name for name in names if os.path.exists(project.root / name)), None)
    text = f"There is no {CONDA_FILE}, so the environment has no packages"
    if other is None:
        return f"{text}; name them there, or write `dependencies: []` there if none are meant."
    return f"{text}; `CondaDependenciesFile: {other}` in the run configuration would take those of {other}."


def _read(project: Project, request: SubmitRequest, context: Context) -> Intent:
    files = [from_here(each, project, context) for each in (request.conda_file, request.spark_file)]
    configuration = load_configuration(project, request.run_configuration, request.target, *files)
    require_environment(request, configuration)
    if not request.prepare_only:
        asked_gpus(request.gpu, configuration)  # refuses what contradicts itself, before anything is done
    if request.how.variables:
        variables = {**configuration.run.environment_variables, **dict(request.how.variables)}
        configuration = replace(configuration, run=replace(configuration.run, environment_variables=variables))
    job = find_job(project, request, configuration, context)
    product = product_of(configuration.target, context, wanted_secrets(request, configuration))
    if product.is_this_system and configuration.environment is None and request.environment.of_run is None:
        _require_program(job, configuration, project, context)
    if context.only_looks:
        require_state_directory(project, context.user_home)
        project = project.with_identity(project.id or _NO_ID_YET, project.name)
    else:
        project = ensure_identity(project, context.user_home)
        ensure_state_directory(project, context.user_home)
    return Intent(project, request, configuration, job, product)


def _require_program(job: Job, configuration: Configuration, project: Project, context: Context) -> None:
    """What the run's PATH is on another machine, or in an environment that is not built yet, is not known here."""
    if job.is_python or "/" in job.words[0] or find_program(job.words[0], context.environment):
        return
    python = find_python(configuration.target.python_location, project.root, context)
    if find_program(job.words[0], {"PATH": os.path.dirname(python)}) is None:
        raise not_found(job.words[0])


def from_here(file: str | None, project: Project, context: Context) -> str | None:
    """A file named on the command line is meant from where that was typed; in the configuration, from the project."""
    return None if file is None else os.path.relpath(context.directory / file, project.root)
