"""Whether an environment is the right one: what its file asks for, and what is installed for the machine it is on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.environments.findings import Finding
from holdfast.environments.fixes import apply_fixes
from holdfast.environments.replacements import find_replacements
from holdfast.errors import ConfigurationError, HostError, NotAvailable
from holdfast.frozen import dataclass
from holdfast.hosts.host import Host
from holdfast.project.configuration import Configuration, load_configuration, managed_environment
from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.folder import Project
from holdfast.project.problems import Problem, errors_in
from holdfast.project.spec_files import read_environment_spec
from holdfast.workbench.environments.planned import planned_container, planned_environment
from holdfast.workbench.replies import number, rows, text, truth, understood
from holdfast.workbench.submitting.environment import exported_spec
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.submit import from_here
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import host_of


@dataclass(frozen=True)
class Question:
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
class Framework:
    """`cuda` None: it is not known, or there is none (`is_cpu`)."""

    name: str
    version: str
    cuda: str | None
    is_cpu: bool | None


@dataclass(frozen=True)
class Looked:
    """What was looked at on the target's host. `environment` is empty for the user's own Python; `is_there` False:
    the environment is not built."""

    target: str
    is_there: bool
    gpus: tuple[str, ...]
    driver: str | None
    problem: str
    wants_gpu: bool
    environment: str = ""
    path: str = ""
    python: str = ""
    packages: int = 0
    frameworks: tuple[Framework, ...] = ()


@dataclass(frozen=True)
class Checked:
    """`file` is empty where there is none, `is_used` False where the target runs on the user's own Python. `there`
    None: the host could not be asked, and `unasked` is why. `fixed` is what was written into files."""

    file: str
    lines: int
    is_used: bool
    remarks: tuple[Remark, ...]
    there: Looked | None
    unasked: HostError | NotAvailable | None
    fixed: tuple[Finding, ...] = ()

    @property
    def has_errors(self) -> bool:
        return any(each.severity == "error" for each in self.remarks)


def check(project: Project, question: Question, around: Surroundings) -> Checked:
    """Raises ConfigurationError for files that cannot be read, or cannot be fixed."""
    configuration, spec = _read(project, question, around)
    fixed: tuple[Finding, ...] = ()
    if question.fix and spec is not None:
        found = find_replacements(spec, wants_gpu=_asks_for_gpu(question, configuration))
        fixed = tuple(each for each in found if each.replacement is not None)
        if apply_fixes(project.root, fixed):
            configuration, spec = _read(project, question, around)
    remarks = [_of_file(each) for each in configuration.warnings if spec is not None and each.file == spec.file]
    asks = _asks_for_gpu(question, configuration)
    there: Looked | None = None
    unasked: HostError | NotAvailable | None = None
    installed: list[Remark] = []
    try:
        there, installed = _look(project, configuration, asks, around)
    except (HostError, NotAvailable) as error:
        unasked = error
    if spec is not None:
        wants_gpu = asks or (there is not None and there.wants_gpu and not _refuses_gpus(configuration))
        remarks += [_of_spec(each) for each in find_replacements(spec, wants_gpu=wants_gpu)]
    remarks += installed
    file, lines = (spec.file, len(spec.conda) + len(spec.pip)) if spec is not None else ("", 0)
    is_used = managed_environment(configuration) is not None
    return Checked(file, lines, is_used, tuple(remarks), there, unasked, fixed)


def _asks_for_gpu(question: Question, configuration: Configuration) -> bool:
    """Whether somebody wrote it, be the machine as it may: then `--fix` writes builds for CUDA too."""
    wishes = configuration.run.gpu
    if question.gpu or wishes.gpus is not None:
        return question.gpu or wishes.gpus != 0
    return bool(wishes.require) or wishes.stop_if_idle is not None or configuration.target.nvidia_docker is True


def _refuses_gpus(configuration: Configuration) -> bool:
    return configuration.run.gpu.gpus == 0 or configuration.target.nvidia_docker is False


def _read(project: Project, question: Question, around: Surroundings) -> tuple[Configuration, EnvironmentSpec | None]:
    """Also a file that the target makes no use of: another may."""
    file = from_here(question.conda_file, project, around)
    configuration = load_configuration(project, question.run_configuration, question.target, file)
    spec = managed_environment(configuration)
    name = configuration.run.conda_dependencies_file
    if spec is None and (file is not None or (project.root / name).exists()):
        spec, problems = read_environment_spec(project.root, name)
        if errors_in(problems):
            raise ConfigurationError(errors_in(problems))
    return configuration, exported_spec(project, spec)


def _of_file(problem: Problem) -> Remark:
    key = f"{problem.key}: " if problem.key else ""
    sentence = f"{key}{problem.message}."
    return Remark(problem.severity, "file", "", sentence, problem.remedy, problem.file, problem.line)


def _of_spec(found: Finding) -> Remark:
    about = (found.severity, found.kind, found.package, found.sentence, found.remedy)
    return Remark(*about, found.file, found.line, found.replacement)


def _look(
    project: Project, configuration: Configuration, gpu: bool, around: Surroundings
) -> tuple[Looked, list[Remark]]:
    target = configuration.target
    host = host_of(target, around)
    fields = {"gpu": gpu, **_where(project, configuration, host, around)}
    with host.connect() as connection:
        answer = connection.request("environment-check", fields)
    with understood("environment-check"):
        return _looked(target.name, answer), _installed(answer.get("findings", []))


def _where(project: Project, configuration: Configuration, host: Host, around: Surroundings) -> dict[str, Any]:
    location = configuration.target.python_location
    container = planned_container(project, configuration)
    fields: dict[str, Any] = {} if container is None else {"container": container}
    plan = planned_environment(project, configuration, host, around)
    if plan is not None:
        return {**fields, "plan": plan, "python": location}
    is_found_here = host.is_here and container is None
    return {**fields, "python": find_python(location, project.root, around) if is_found_here else location}


def _looked(target: str, answer: Any) -> Looked:
    gpus = tuple(text(each) or "a GPU" for each in rows(answer["gpus"]))
    driver, problem = answer["driver"], text(answer["problem"])
    about = (gpus, None if driver is None else text(driver), problem, truth(answer["gpu"]))
    if not truth(answer["there"]):
        return Looked(target, False, *about)
    frameworks = tuple(_framework(each) for each in rows(answer["frameworks"]))
    environment, path, python = (text(answer[key]) for key in ("environment", "path", "python"))
    return Looked(target, True, *about, environment, path, python, number(answer["packages"]), frameworks)


def _framework(row: Sequence[Any]) -> Framework:
    name, version, cuda, is_cpu = row
    known = None if is_cpu is None else truth(is_cpu)
    return Framework(text(name), text(version), None if cuda is None else text(cuda), known)


def _installed(found: Iterable[Any]) -> list[Remark]:
    remarks = []
    for row in found:
        kind, package, sentence, remedy, severity = (text(each) for each in row)
        remarks.append(Remark(severity, kind, package, sentence, remedy))
    return remarks
