"""What `-c` and `-t` mean: a run configuration, its compute target and, where they count, files of packages and Spark.

All problems of all these files are reported at once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.errors import ConfigurationError, UnknownName
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import dataclass, replace
from holdfast.project.compute import ComputeTarget, compute_names, examine_compute, has_compute
from holdfast.project.folder import BUILTIN, CONFIGURATION_FOLDER, Project, refuse_paths
from holdfast.project.packages_wish import PackagesChoice, PackagesWish, names_packages
from holdfast.project.problems import Problem, errors_in
from holdfast.project.runconfig import (
    SPARK_FILE,
    SUFFIX,
    RunConfiguration,
    examine_runconfig,
    runconfig_names,
)
from holdfast.shown_text import pasted

if TYPE_CHECKING:  # loaded when an environment is managed, or a run is a PySpark run
    from holdfast.project.environment_spec import EnvironmentSpec
    from holdfast.project.spark import SparkDependencies


@dataclass(frozen=True)
class Configuration:
    """`environment` and `packages`, which says where it comes from, are None when the target's Python is the user's
    own; `spark` when the framework is not PySpark. `target` says definitely which of both it is."""

    run: RunConfiguration
    target: ComputeTarget
    warnings: tuple[Problem, ...] = ()
    environment: EnvironmentSpec | None = None
    spark: SparkDependencies | None = None
    packages: PackagesChoice | None = None


def load_configuration(
    project: Project,
    run_configuration: str | None,
    target: str | None,
    packages: PackagesWish | None = None,
    spark_file: str | None = None,
) -> Configuration:
    """`run_configuration` is a name, `name.runconfig` or a path to it; None is `local`.

    `target`, `packages` and `spark_file` override the file's own, as `-t`, `-d` and `-s` do. Raises UnknownName
    for a name that does not exist and ConfigurationError with every error of the files.
    """
    name = _known_runconfig(project, run_configuration)
    if target is not None:
        _require_target(project, target)
    folders = project.configuration_folders
    run, problems = examine_runconfig(folders, name, target)
    if run:
        run = replace(run, spark_dependencies_file=spark_file or run.spark_dependencies_file)
    target_name = run.target if run else target
    found: ComputeTarget | None = None
    if target_name is not None and has_compute(folders, target_name):
        found, of_target = examine_compute(folders, target_name)
        problems = problems + of_target
    environment: EnvironmentSpec | None = None
    choice: PackagesChoice | None = None
    if run and found and (not found.user_managed_environment or names_packages(packages)):
        from holdfast.project.packages_search import choose_packages, read_chosen

        choice = choose_packages(project, run, found, packages or PackagesWish())
        if choice is not None:
            run = replace(run, conda_dependencies_file=choice.written or run.conda_dependencies_file)
            environment, of_packages = read_chosen(project.root, choice)
            problems = problems + of_packages
        found = replace(found, user_managed_environment=choice is None)
    spark, of_spark = _spark(project, run)
    errors = errors_in(problems + of_spark)
    if errors or run is None or found is None:
        raise ConfigurationError(_why_spark(run, problems) + errors if errors_in(of_spark) else errors)
    # Nothing runs PySpark yet, and who refuses it says that the line is missing: once is enough.
    warnings = [each for each in problems + of_spark if each not in _why_spark(run, problems)]
    return Configuration(run, found, tuple(warnings), environment, spark, choice)


def _spark(project: Project, run: RunConfiguration | None) -> tuple[SparkDependencies | None, list[Problem]]:
    if run is None or run.framework != "PySpark":
        return None, []
    from holdfast.project.spark import SparkDependencies, read_spark

    if run.spark_dependencies_file == SPARK_FILE and not os.path.lexists(project.root / SPARK_FILE):
        return SparkDependencies(), []  # it is not named, and a script may need nothing of Spark's own
    return read_spark(project.root, run.spark_dependencies_file)


def _why_spark(run: RunConfiguration | None, problems: list[Problem]) -> list[Problem]:
    """A run that is one of PySpark only because a line is missing says so before the problems of the Spark file."""
    return [each for each in problems if each.key == "Framework"] if run and run.framework_was_missing else []


def _known_runconfig(project: Project, written: str | None) -> str:
    if written is None:
        return BUILTIN
    name, folders = _runconfig_name(project, written), project.configuration_folders
    if folders.has(name, SUFFIX):
        return name
    hint = "See `holdfast runconfiguration list`."
    if has_compute(folders, name):
        hint = (
            f"For the compute target of that name: holdfast runconfiguration create -n {pasted(name)} -t {pasted(name)}"
        )
    raise UnknownName("run configuration", name, runconfig_names(folders), hint)


def _runconfig_name(project: Project, written: str) -> str:
    if not written.endswith(SUFFIX):
        refuse_paths("run configuration", written)
        return written
    folder, file = os.path.split(written)
    if folder:
        home = real_path(project.root / CONFIGURATION_FOLDER)
        # Typed in the project's folder, or below it with the way back up.
        if home not in (real_path(project.root / folder), real_path(folder)):
            refuse_paths("run configuration", written)
    name = file.removesuffix(SUFFIX)
    refuse_paths("run configuration", name)
    return name


def _require_target(project: Project, name: str) -> None:
    refuse_paths("compute target", name)
    folders = project.configuration_folders
    if not has_compute(folders, name):
        attach = f"holdfast computetarget attach remote -n {pasted(name)} -a HOST"
        hint = f"If it is a machine that is not attached yet: {attach}"
        raise UnknownName("compute target", name, compute_names(folders), hint)
