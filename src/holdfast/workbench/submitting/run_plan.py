"""From what the user asked for to the plan of a run. Looks at the project's files and at nothing on the host."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from holdfast.containers import Names
from holdfast.errors import NotAvailable, ProjectError, UsageError
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass, replace
from holdfast.plan import (
    Command,
    ContainerPlan,
    DataFolder,
    EarlierRun,
    EnvironmentPlan,
    Hole,
    Plan,
    RunLimits,
    Text,
    text,
)
from holdfast.project.compute import CONTAINER_TYPES
from holdfast.project.configuration import Configuration
from holdfast.project.folder import Project
from holdfast.project.gpu_wishes import GpuWishes, gpu_request
from holdfast.shown_text import pasted
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import Product
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.job import Job
from holdfast.workbench.submitting.submit_request import CommandWishes, SubmitRequest
from holdfast.workbench.submitting.variables import given_variables, path_variables, project_variables

if TYPE_CHECKING:
    from holdfast.given_files import GivenData
    from holdfast.snapshots.folder_contents import FolderContents

_DEFAULT_GRACE = 10.0
SHORTEST_SECRET = 4
LEVELS_ABOVE = 3
"""`../../../x` of a script stays in the run's working tree, and so does one `..` more."""
_LONGEST_NAME = 100
"""Bytes: encrypted disks take about 140."""


class SentData(NamedTuple):
    """Data that the host gets, if it has not, under the name that people call it by."""

    name: str
    contents: FolderContents


class Given(NamedTuple):
    """Of all data of a run: what its plan has, what its record says, and what the host needs."""

    planned: tuple[DataFolder, ...] = ()
    recorded: tuple[GivenData, ...] = ()
    sent: tuple[SentData, ...] = ()

    def plus(self, other: Given) -> Given:
        return Given(self.planned + other.planned, self.recorded + other.recorded, self.sent + other.sent)


@dataclass(frozen=True)
class Intent:
    """The request, read against the project: what it names exists, and can be run by this version."""

    project: Project
    request: SubmitRequest
    configuration: Configuration
    job: Job
    product: Product
    shipped: EnvironmentPlan | None = None
    """The environment with packages that this machine sends, once they are known."""
    given: Given = Given()
    earlier: EarlierRun | None = None
    """What it goes on from; whether that is on the host is known once that was asked."""


@dataclass(frozen=True)
class Identity:
    """What tells this run from every other; made when its id was reserved."""

    run_id: str
    generation: str
    snapshot: str


def make_plan(intent: Intent, identity: Identity, context: Context) -> Plan:
    project, request, configuration = intent.project, intent.request, intent.configuration
    run, target = configuration.run, configuration.target
    if run.framework == "PySpark":
        raise _spark(configuration)
    is_here = intent.product.host.is_here
    gpu = GpuRequest() if request.prepare_only else asked_gpus(request.gpu, configuration)
    container = container_plan(intent, Names(identity.run_id, project.id, project.name), gpu.gpus)
    environment = intent.shipped or intended_environment(intent, context)
    if container is not None and environment is not None:
        container = replace(container, python=None)  # also where the target would use the image's own
    share = _share(target.native_shared_directory, project, is_here)
    shown = Text((*share.parts, "/")) if container is None else text(container.share)
    interpreter = _interpreter(intent, environment is not None, context)
    given = _variables(intent, identity, shown, environment, interpreter, context)
    grace = next(each for each in (request.grace, run.grace_time, _DEFAULT_GRACE) if each is not None)
    return Plan(
        run=identity.run_id,
        project=project.id,
        generation=identity.generation,
        snapshot=identity.snapshot,
        stores=_stores(intent),
        share=share,
        command=None if request.prepare_only else _command(intent, given, interpreter),
        limits=RunLimits(grace, request.time_limit if request.time_limit is not None else run.time_limit),
        environment=environment,
        prepare=run.prepare_environment or request.prepare_only,
        secrets=wanted_secrets(request, configuration),
        python=None if is_here and container is None else target.python_location,
        container=container,
        gpu=gpu,
        engine=intent.product.engine,
        earlier=intent.earlier,
        data=intent.given.planned,
        place=place_of_project(project.root.name),
    )


def place_of_project(name: str) -> str:
    """In the run's working tree, a few folders deep, so that `../x` of a script stays in it. The folder has its own
    name: scripts use it for their logs. A name that is odd on other systems is made plain."""
    plain = "".join(each if each.isprintable() and each not in "/\\:" else "_" for each in name)
    plain = plain.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore")
    is_usual = plain.strip(". ") and reserved_path([plain]) is None
    return "/".join((*(["above"] * LEVELS_ABOVE), plain if is_usual else "project"))


def _variables(
    intent: Intent,
    identity: Identity,
    shown: Text,
    environment: EnvironmentPlan | None,
    interpreter: Text,
    context: Context,
) -> dict[str, Text]:
    """Of the script. `shown`: where it finds the shared folder."""
    project, configuration = intent.project, intent.configuration
    projects = environment.projects if environment is not None else ()
    ids, own = (identity.run_id, identity.generation), configuration.run.environment_variables
    given = given_variables(configuration, project.name, ids, shown, projects)
    given |= {} if intent.earlier is None else {"HOLDFAST_FROM": text(intent.earlier.run)}
    given |= project_variables(project.root, intent.product.is_this_system)
    return given | path_variables(interpreter, environment is not None, own, context)


def asked_gpus(typed: GpuWishes, configuration: Configuration) -> GpuRequest:
    """What was typed, else what the run configuration says, else what the target does."""
    run, target = configuration.run, configuration.target
    gives_all = target.nvidia_docker and target.type in CONTAINER_TYPES
    by_target = f"`nvidiaDocker: true` in {posixpath.basename(target.file or '')}" if gives_all else ""
    return gpu_request(typed, run.gpu, posixpath.basename(run.file or ""), by_target)


def container_plan(intent: Intent, names: Names, gpus: int | str | None = None) -> ContainerPlan | None:
    """With the image of the run whose environment is wanted, if one is; `gpus` as the run asks for them."""
    container, of_run = intent.product.container, intent.request.environment.of_run
    if of_run is None or not container.has_image:
        return container.plan(names, gpus=gpus)
    from holdfast.workbench.submitting.environment_choice import image_of_run

    return container.plan(names, image_of_run(intent.project, of_run), gpus)


def _command(intent: Intent, variables: dict[str, Text], interpreter: Text) -> Command:
    job = intent.job
    words = tuple(text(word) for word in job.words)
    before = (*_terminal(intent.request.how, interpreter), *_copies(intent.request.how, interpreter))
    if job.is_notebook:
        program = text(Hole.FARSIDE, "/holdfast/farside/run/notebook.py")
        words = (program, words[0], text(Hole.WORK, "/outputs"), *words[1:])
    argv = (*before, *((interpreter, *words) if job.is_python else words))
    if intent.request.how.terminal:
        variables = {"TERM": text("xterm-256color"), **variables}
    directory = text(Hole.WORK, f"/{job.folder}") if job.folder else text(Hole.WORK)
    return Command(argv, variables, directory, interpreter)


def _copies(how: CommandWishes, interpreter: Text) -> tuple[Text, ...]:
    """The words before a command that is started several times."""
    if how.copies is None:
        return ()
    program = text(Hole.FARSIDE, "/holdfast/farside/run/processes_per_node.py")
    shown = "tag" if how.tags_output else "first"
    return (interpreter, text("-I"), text("-S"), program, text(str(how.copies)), text(shown))


def _terminal(how: CommandWishes, interpreter: Text) -> tuple[Text, ...]:
    """The words before a command that gets a terminal."""
    program = text(Hole.FARSIDE, "/holdfast/farside/run/pseudo_terminal.py")
    return (interpreter, text("-I"), text("-S"), program) if how.terminal else ()


def _interpreter(intent: Intent, is_managed: bool, context: Context) -> Text:
    if is_managed:
        return text(Hole.ENVIRONMENT, "/bin/python")
    if intent.product.is_this_system:
        return text(find_python(intent.configuration.target.python_location, intent.project.root, context))
    return text(Hole.PYTHON)  # found by the far side


def require_environment(request: SubmitRequest, configuration: Configuration) -> None:
    """Refuse wishes about an environment where none is made."""
    wishes = request.environment
    is_anew = (wishes.rebuild or wishes.ship_packages) and wishes.of_run is None
    is_wanted = request.prepare_only or wishes.upgrade or is_anew
    if is_wanted and configuration.environment is None:
        target = configuration.target
        where = (
            target.file
            or f"a compute target of its own: holdfast computetarget attach local --name {pasted(target.name)}2"
        )
        whose = "the image's" if target.type in CONTAINER_TYPES else "your"
        raise ProjectError(
            f"The target `{target.name}` runs on {whose} own Python as it is: there is no environment to prepare.",
            f"To build one, name its file with -d, or write `userManagedEnvironment: false` into {where}.",
        )


def wanted_secrets(request: SubmitRequest, configuration: Configuration) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*configuration.run.secrets, *request.secrets)))


def secret_values(names: tuple[str, ...], job: Job, context: Context) -> Mapping[str, str]:
    """The values, out of the variables of the shell. They go to the far side in memory and nowhere else."""
    values = {}
    for name in names:
        if not name.isidentifier():  # `--secret TOKEN=value`: the value must not be shown once more
            variable = name.partition("=")[0]
            known = variable if variable.isidentifier() else "TOKEN"
            raise UsageError(
                "`--secret` takes the name of a variable, not its value.",
                f"Set it first: read -rs {known} && export {known}; then: --secret {known}. What was typed is in the "
                "shell's history now.",
            )
        value = context.environment.get(name)
        if not value:
            raise UsageError(
                f"The secret `{name}` has no value in this shell.", f"Set it first: read -rs {name} && export {name}"
            )
        if len(value) < SHORTEST_SECRET:
            raise UsageError(
                f"The value of the secret `{name}` is shorter than {SHORTEST_SECRET} characters: "
                "it could not be taken out of the output.",
                "Pass something that short under EnvironmentVariables instead.",
            )
        if any(value in word for word in job.words):
            raise UsageError(
                f"The value of the secret `{name}` stands in the script's arguments, which are recorded.",
                f'Let the script read it: os.environ["{name}"]',
            )
        values[name] = value
    return values


def _spark(configuration: Configuration) -> NotAvailable:
    run = configuration.run
    if run.framework_was_missing:
        return NotAvailable(
            f"`{run.file}` has no `Framework` line, which means PySpark, and that does not work in this version yet.",
            "If the script is plain Python, add the line: Framework: Python",
        )
    return NotAvailable(
        f"`{run.file}` says `Framework: PySpark`, which does not work in this version yet.",
        "If the script is plain Python, write: Framework: Python",
    )


def intended_environment(intent: Intent, context: Context) -> EnvironmentPlan | None:
    """None: the user's own Python, or that of the image, is used as it is."""
    wishes = intent.request.environment
    if intent.configuration.environment is None and wishes.of_run is None:
        return None
    # Only here: a run on one's own Python starts 20 ms sooner.
    from holdfast.environments.environment_plan import Wishes
    from holdfast.workbench.submitting.environment_choice import plan_environment_of, plan_environment_of_run

    project, configuration, is_here = intent.project, intent.configuration, intent.product.is_this_system
    if wishes.of_run is not None:
        return plan_environment_of_run(project, wishes.of_run, configuration, is_here, wishes.rebuild, context)
    return plan_environment_of(project, configuration, is_here, Wishes(None, wishes.upgrade, wishes.rebuild), context)


def _stores(intent: Intent) -> tuple[Text, ...]:
    """Where the far side finds contents: a host on this disk reads the project's own store, others what was sent."""
    there = text(Hole.HOME, "/objects")
    if not intent.product.host.is_here:
        return (there,)
    return (text(os.fspath(intent.project.state_directory / "objects")), there)


def _share(directory: str | None, project: Project, is_here: bool) -> Text:
    """The folder shared between a project's runs. A base that the user names keeps projects apart by their id."""
    if directory is None:
        return text(Hole.HOME, "/share/", project.id)
    if not is_here and (directory == "~" or directory.startswith("~/")):
        return text(Hole.ACCOUNT, f"{directory[1:].rstrip('/')}/{project.id}")
    return text(posixpath.join(os.path.expanduser(directory) if is_here else directory, project.id))
