"""Whether an environment is the right one: what its file asks for, and what is installed for the machine it is on."""

from __future__ import annotations

import os

from holdfast.environments.fixes import apply_fixes
from holdfast.environments.replacements import find_replacements
from holdfast.environments.spec_findings import SpecFinding
from holdfast.errors import ConfigurationError, HostError, NotAvailable
from holdfast.frozen import dataclass, replace
from holdfast.hosts.client import Client
from holdfast.hosts.replies import Installed
from holdfast.project.configuration import Configuration, load_configuration
from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.folder import Project
from holdfast.project.packages_search import read_environment_spec
from holdfast.project.packages_wish import PackagesWish
from holdfast.project.problems import Problem, errors_in
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import host_of
from holdfast.workbench.submitting.environment_choice import exported_spec, planned_container, planned_environment
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.packages import folder_of, from_here


@dataclass(frozen=True)
class EnvironmentCheckRequest:
    """What was typed. `gpu`: runs are to use one, whether the machine has one or not."""

    run_configuration: str | None = None
    target: str | None = None
    conda_file: str | None = None
    fix: bool = False
    gpu: bool = False


@dataclass(frozen=True)
class Remark:
    """One thing that is wrong: of the file with its line, of what is installed without."""

    severity: str
    kind: str
    package: str
    sentence: str
    remedy: str
    file: str = ""
    line: int = 0
    replacement: str | None = None


@dataclass(frozen=True)
class EnvironmentCheck:
    """`file` is empty where there is none, `is_used` False where the target runs on the user's own Python. `there`
    None: the host could not be asked, and `unreachable` is why. `fixed` is what was written into files."""

    file: str
    lines: int
    is_used: bool
    remarks: tuple[Remark, ...]
    there: Installed | None
    unreachable: HostError | NotAvailable | None
    fixed: tuple[SpecFinding, ...] = ()
    target: str = ""

    @property
    def has_errors(self) -> bool:
        return any(each.severity == "error" for each in self.remarks)


def check(project: Project, question: EnvironmentCheckRequest, context: Context) -> EnvironmentCheck:
    """Raises ConfigurationError for files that cannot be read, or cannot be fixed."""
    context = replace(context, only_looks=True)
    configuration, spec = _read(project, question, context)
    fixed: tuple[SpecFinding, ...] = ()
    if question.fix and spec is not None:
        found = find_replacements(spec, wants_gpu=_asks_for_gpu(question, configuration))
        fixed = tuple(each for each in found if each.replacement is not None)
        if apply_fixes(project.root, fixed):
            configuration, spec = _read(project, question, context)
    remarks = [_of_file(each) for each in configuration.warnings if spec is not None and each.file == spec.file]
    asks = _asks_for_gpu(question, configuration)
    there: Installed | None = None
    unreachable: HostError | NotAvailable | None = None
    try:
        there = _look(project, configuration, asks, context)
    except (HostError, NotAvailable) as error:
        unreachable = error
    if spec is not None:
        refuses = configuration.run.gpu.gpus == 0 or configuration.target.nvidia_docker is False
        wants_gpu = asks or (there is not None and there.wants_gpu and not refuses)
        remarks += [_of_spec(each) for each in find_replacements(spec, wants_gpu=wants_gpu)]
    for each in there.findings if there is not None else ():
        remarks.append(Remark(each.severity, each.kind, each.package, each.sentence, each.remedy))
    file, lines = (spec.file, len(spec.conda) + len(spec.pip)) if spec is not None else ("", 0)
    is_used = configuration.environment is not None
    return EnvironmentCheck(file, lines, is_used, tuple(remarks), there, unreachable, fixed, configuration.target.name)


def _asks_for_gpu(question: EnvironmentCheckRequest, configuration: Configuration) -> bool:
    """Whether the user wrote it, whatever the machine has: then `--fix` writes builds for CUDA too."""
    wishes = configuration.run.gpu
    if question.gpu or wishes.gpus is not None:
        return question.gpu or wishes.gpus != 0
    return bool(wishes.require) or wishes.stop_if_idle is not None or configuration.target.nvidia_docker is True


def _read(
    project: Project, question: EnvironmentCheckRequest, context: Context
) -> tuple[Configuration, EnvironmentSpec | None]:
    """Also a file that the target does not use: another may."""
    file = from_here(question.conda_file, project, context)
    wish = PackagesWish(file, folder=folder_of(project, context))
    configuration = load_configuration(project, question.run_configuration, question.target, wish)
    spec = configuration.environment
    name = configuration.run.conda_dependencies_file
    if spec is None and os.path.exists(project.root / name):
        spec, problems = read_environment_spec(project.root, name)
        if errors_in(problems):
            raise ConfigurationError(errors_in(problems))
    return configuration, exported_spec(project, spec)


def _of_file(problem: Problem) -> Remark:
    key = f"{problem.key}: " if problem.key else ""
    sentence = f"{key}{problem.message}."
    return Remark(problem.severity, "file", "", sentence, problem.remedy, problem.file, problem.line)


def _of_spec(found: SpecFinding) -> Remark:
    about = (found.severity, found.kind, found.package, found.sentence, found.remedy)
    return Remark(*about, found.file, found.line, found.replacement)


def _look(project: Project, configuration: Configuration, gpu: bool, context: Context) -> Installed:
    host, location = host_of(configuration.target, context), configuration.target.python_location
    container = planned_container(project, configuration)
    plan = planned_environment(project, configuration, host, context)
    if plan is None and host.is_here and container is None:
        location = find_python(location, project.root, context)
    planned = {name: value for name, value in (("container", container), ("plan", plan)) if value is not None}
    with host.connect() as connection:
        return Client(connection).environment_check({"gpu": gpu, "python": location, **planned})
