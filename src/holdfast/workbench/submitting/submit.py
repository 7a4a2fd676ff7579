"""Submitting a run: read what was asked for, begin to reach the host, then launch.

The far side takes a while to start, so it is started as soon as the target is known, and the rest of the client, in
`launch.py`, is loaded meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.frozen import replace
from holdfast.history.run_folder import RunFolders
from holdfast.installed_programs import find_program
from holdfast.plan import EarlierRun
from holdfast.project.compute import SUFFIX as TARGET_SUFFIX
from holdfast.project.configuration import Configuration
from holdfast.project.earlier_wish import EarlierWish
from holdfast.project.folder import (
    CONFIGURATION_FOLDER,
    Project,
    ensure_identity,
    ensure_state_directory,
    require_state_directory,
)
from holdfast.shown_text import pasted
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import product_of
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.job import Job, find_job, not_found
from holdfast.workbench.submitting.named_file import PYTHONS
from holdfast.workbench.submitting.packages import packages_news, read_configuration
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
    intent = _read(project, request, looking)
    yield from _packages_news(intent)
    yield from rehearse(intent, looking)


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
    if not was_known and intent.job.folder and not intent.job.is_notebook:
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
    target = intent.configuration.target
    hidden = intent.project.configuration_folders.hidden(target.name, TARGET_SUFFIX)
    if hidden is not None:
        yield events.Noted(f"Using this project's target `{target.name}` ({target.file}), not yours ({hidden}).")
    yield from (events.Warned(each) for each in intent.job.cautions)
    yield from (events.Noted(each) for each in intent.job.notes)
    yield from _packages_news(intent)
    of_run = request.environment.of_run
    if of_run is not None and not intent.product.container.has_image:
        yield from _about_no_image(intent, of_run)


def _packages_news(intent: Intent) -> Iterator[events.Event]:
    is_of_run = intent.request.environment.of_run is not None
    product = intent.product
    whose = "the image's" if product.container.has_image else "your" if product.host.is_here else "the machine's"
    yield from packages_news(intent.configuration, intent.project, is_of_run, whose)


def _about_no_image(intent: Intent, of_run: str) -> Iterator[events.Event]:
    """A user who wants the environment of a run may think that its image is a part of that."""
    from holdfast.workbench.submitting.environment_choice import image_of_run

    image, target = image_of_run(intent.project, of_run), intent.configuration.target
    if image is not None:
        yield events.Noted(
            f"The other run was in a container of the image {image.known_as}; the target `{target.name}` has no "
            "container, so only the packages are the same. To have the image too, name a docker target with -t."
        )


def _read(project: Project, request: SubmitRequest, context: Context) -> Intent:
    configuration = read_configuration(project, request, context)
    require_environment(request, configuration)
    if not request.prepare_only:
        asked_gpus(request.gpu, configuration)  # refuses what contradicts itself, before anything is done
    if request.how.variables:
        variables = {**configuration.run.environment_variables, **dict(request.how.variables)}
        configuration = replace(configuration, run=replace(configuration.run, environment_variables=variables))
    if request.given.data or configuration.run.data:
        from holdfast.workbench.submitting.chosen_data import with_data

        configuration = with_data(configuration, request.given.data, project, context)
    job = find_job(project, request, configuration, context)
    if job.is_notebook and request.environment.of_run is None:
        job, configuration = _with_kernel(job, configuration, project)
    product = product_of(configuration.target, context, wanted_secrets(request, configuration))
    if product.is_this_system and configuration.environment is None and request.environment.of_run is None:
        _require_program(job, configuration, project, context)
    if context.only_looks:
        require_state_directory(project, context.user_home)
        project = project.with_identity(project.id or _NO_ID_YET, project.name)
    else:
        project = ensure_identity(project, context.user_home)
        ensure_state_directory(project, context.user_home)
    return Intent(project, request, configuration, job, product, earlier=_earlier(project, request.given.earlier))


def _earlier(project: Project, wish: EarlierWish | None) -> EarlierRun | None:
    """The run that is meant. Raises UsageError where there is none, or more than one."""
    if wish is None:
        return None
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(wish.run)
    return EarlierRun(run_id, folders.submission(run_id).project_id, wish.path)


def _with_kernel(job: Job, configuration: Configuration, project: Project) -> tuple[Job, Configuration]:
    """With the packages that run a notebook, in an environment that is built."""
    if configuration.environment is None:
        return job, configuration
    from holdfast.workbench.submitting.notebooks import with_packages

    spec = with_packages(configuration.environment, job.script, project.root)
    added = [each.text for each in spec.pip if each not in configuration.environment.pip]
    notes = (f"The environment also gets {' and '.join(added)}, to run the notebook.",) if added else ()
    return replace(job, notes=notes), replace(configuration, environment=spec)


def _require_program(job: Job, configuration: Configuration, project: Project, context: Context) -> None:
    """What the run's PATH is on another machine, or in an environment that is not built yet, is not known here."""
    if job.is_python or "/" in job.words[0] or find_program(job.words[0], context.environment):
        return
    python = find_python(configuration.target.python_location, project.root, context)
    if find_program(job.words[0], {"PATH": os.path.dirname(python)}) is None:
        raise not_found(job.words[0])
