"""Run configurations: `<name>.runconfig`, beside the compute targets, says how a run runs, and `-c` names one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from holdfast.errors import UsageError, nearest
from holdfast.frozen import dataclass, field
from holdfast.project.compute import compute_names, has_compute
from holdfast.project.configuration_folders import BUILTIN, ConfigurationFolders
from holdfast.project.credentials import looks_secret
from holdfast.project.data_wishes import KEY as DATA
from holdfast.project.data_wishes import DataWish, read_data
from holdfast.project.gpu_wishes import KEYS as GPU_KEYS
from holdfast.project.gpu_wishes import GpuWishes, read_wishes, render_wishes
from holdfast.project.include_wishes import as_typed, checked_include
from holdfast.project.output_wishes import checked_glob, parse_limit, render_limit
from holdfast.project.problems import Problem, errors_in
from holdfast.project.quantities import format_duration, parse_duration
from holdfast.shown_text import pasted

if TYPE_CHECKING:  # reading YAML is loaded when there is a file to read: a bare folder has none
    from holdfast.project.fields import Fields

SUFFIX = ".runconfig"
CONDA_FILE = "aml_config/conda_dependencies.yml"
SPARK_FILE = "aml_config/spark_dependencies.yml"

Framework = Literal["Python", "PySpark"]

KEYS = (
    "ArgumentVector",
    "Target",
    "EnvironmentVariables",
    "Framework",
    "CondaDependenciesFile",
    "SparkDependenciesFile",
    "PrepareEnvironment",
    "TrackedRun",
    "Secrets",
    "TimeLimit",
    "GraceTime",
    "Outputs",
    "OutputsLimit",
    DATA,
    "Include",
    *GPU_KEYS,
)
DATA_KEYS = ("UseSampling", "DataSourceSettings", "DataSourceSubstitutions")
"""Data preparation of the original: accepted and ignored. `RunConfiguration.ignored` is there to say so."""
EARLY_KEYS = ("Description", "CondaFile", "ManagedEnvironment")
"""Of early versions of the original: `CondaFile` is `CondaDependenciesFile`, the others say nothing."""


@dataclass(frozen=True)
class RunConfiguration:
    """`argument_vector` may hold `$file`; durations are seconds; `ignored` are the `DATA_KEYS` it has."""

    name: str
    target: str
    argument_vector: tuple[str, ...] = ("$file",)
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    framework: Framework = "Python"
    framework_was_missing: bool = False
    conda_dependencies_file: str = CONDA_FILE
    spark_dependencies_file: str = SPARK_FILE
    prepare_environment: bool = True
    tracked_run: bool = True
    secrets: tuple[str, ...] = ()
    time_limit: float | None = None
    grace_time: float | None = None
    outputs: tuple[str, ...] = ()
    outputs_limit: int | None = None
    data: tuple[DataWish, ...] = ()
    include: tuple[str, ...] = ()
    gpu: GpuWishes = GpuWishes()
    ignored: tuple[str, ...] = ()
    file: str | None = None


def runconfig_names(folders: ConfigurationFolders) -> list[str]:
    """Every name that `read_runconfig` reads: those with a file, and `local`."""
    return folders.names(SUFFIX)


def read_runconfig(
    folders: ConfigurationFolders, name: str, target: str | None = None
) -> tuple[RunConfiguration | None, list[Problem]]:
    """The configuration, None when the file has an error. `target` stands for its `Target`, as `-t` does."""
    configuration, problems = examine_runconfig(folders, name, target)
    return (None if errors_in(problems) else configuration), problems


def examine_runconfig(
    folders: ConfigurationFolders, name: str, target: str | None = None
) -> tuple[RunConfiguration | None, list[Problem]]:
    """As `read_runconfig`, but also returns what could be read of a file with errors: to show, not to run."""
    if name == BUILTIN and name not in folders.of_project(SUFFIX):
        return RunConfiguration(name=BUILTIN, target=target or BUILTIN), []
    from holdfast.project.fields import Fields

    document, problems = folders.read(name, SUFFIX, "See `holdfast runconfiguration list`.")
    if document is None:
        return None, problems
    fields = Fields(document, problems)
    fields.check_keys(KEYS, accepted=(*DATA_KEYS, *EARLY_KEYS))
    framework = fields.choice("Framework", ("Python", "PySpark"))
    configuration = RunConfiguration(
        name=name,
        target=target or _target(fields, folders),
        argument_vector=_arguments(fields),
        environment_variables=_variables(fields),
        framework="Python" if framework == "Python" else "PySpark",
        framework_was_missing=not fields.has("Framework"),
        conda_dependencies_file=_path(fields, "CondaDependenciesFile") or _path(fields, "CondaFile") or CONDA_FILE,
        spark_dependencies_file=_path(fields, "SparkDependenciesFile") or SPARK_FILE,
        prepare_environment=fields.boolean("PrepareEnvironment", default=True),
        tracked_run=fields.boolean("TrackedRun", default=True),
        secrets=_secrets(fields),
        time_limit=_duration(fields, "TimeLimit", least=0.001),
        grace_time=_duration(fields, "GraceTime", least=0.0),
        outputs=_globs(fields, "Outputs", "checkpoints/", checked_glob),
        outputs_limit=_limit(fields),
        data=read_data(fields),
        include=_globs(fields, "Include", "data/", checked_include),
        gpu=read_wishes(fields),
        ignored=tuple(key for key in DATA_KEYS if fields.document.entry(key)),
        file=document.file,
    )
    _say_what_is_easily_missed(fields, configuration)
    return configuration, fields.in_order()


def render_runconfig(configuration: RunConfiguration) -> str:
    """The text of a new file. `Framework` is always written: a file without the line means PySpark."""
    from holdfast.project.documents import render_scalar

    lines = ["ArgumentVector:"]
    lines += [f"  - {render_scalar(each)}" for each in configuration.argument_vector]
    lines += [f"Target: {render_scalar(configuration.target)}", f"Framework: {configuration.framework}"]
    if configuration.environment_variables:
        lines.append("EnvironmentVariables:")
        for name, value in configuration.environment_variables.items():
            lines.append(f"  {render_scalar(name)}: {render_scalar(value)}")
    lines += [
        f"CondaDependenciesFile: {render_scalar(configuration.conda_dependencies_file)}",
        f"SparkDependenciesFile: {render_scalar(configuration.spark_dependencies_file)}",
        f"PrepareEnvironment: {render_scalar(configuration.prepare_environment)}",
        f"TrackedRun: {render_scalar(configuration.tracked_run)}",
    ]
    if configuration.secrets:
        lines += ["Secrets:", *(f"  - {each}" for each in configuration.secrets)]
    if configuration.time_limit is not None:
        lines.append(f"TimeLimit: {format_duration(configuration.time_limit)}")
    if configuration.grace_time is not None:
        lines.append(f"GraceTime: {format_duration(configuration.grace_time)}")
    if configuration.outputs:
        lines += ["Outputs:", *(f"  - {render_scalar(each)}" for each in configuration.outputs)]
    if configuration.include:
        lines += ["Include:", *(f"  - {render_scalar(as_typed(each))}" for each in configuration.include)]
    if configuration.outputs_limit is not None:
        lines.append(f"OutputsLimit: {render_limit(configuration.outputs_limit)}")
    if configuration.data:
        lines += [f"{DATA}:", *(f"  - {render_scalar(str(each))}" for each in configuration.data)]
    lines += render_wishes(configuration.gpu)
    return "\n".join(lines) + "\n"


def _target(fields: Fields, folders: ConfigurationFolders) -> str:
    written = fields.text("Target")
    if written is not None and has_compute(folders, written):
        return written
    valid = compute_names(folders)
    if written is None and fields.lacks("Target"):
        fields.error("Target", "missing", f"Write `Target: {valid[0] if len(valid) == 1 else BUILTIN}`.")
    elif written is not None:
        guess = nearest(written, valid)
        remedy = f"Write `Target: {guess}`." if guess else f"Available: {', '.join(valid)}."
        attach = "" if guess else f" To add one: `holdfast computetarget attach … --name {pasted(written)}`."
        fields.error("Target", f"there is no compute target `{written}`", remedy + attach)
    return written or BUILTIN


def _arguments(fields: Fields) -> tuple[str, ...]:
    found = fields.texts("ArgumentVector", "$file")
    return tuple(each.text for each in found) if found else ("$file",)


def _variables(fields: Fields) -> Mapping[str, str]:
    from holdfast.project.nodes import Scalar

    variables = {}
    for entry in fields.pairs("EnvironmentVariables"):
        key = f"EnvironmentVariables.{entry.name}"
        if not entry.name or "=" in entry.name or "\0" in entry.name:
            fields.error(key, "is not the name of a variable", "Write `NAME: value`.", entry.key)
        elif not isinstance(entry.value, Scalar):
            fields.error(key, "must be a single value", f"Write `{entry.name}: value` on one line.", entry.key)
        elif "\0" in entry.value.text:
            fields.error(key, "holds a zero byte, which no variable can", "Remove it.", entry.key)
        else:
            variables[entry.name] = "" if entry.value.is_null else entry.value.text
            if variables[entry.name] and looks_secret(entry.name):
                remedy = f"Write `- {entry.name}` below `Secrets:` instead, and set the variable in your shell."
                fields.warn(key, "looks like a secret, and this file is stored with every run", remedy, entry.key)
    return variables


def _path(fields: Fields, key: str) -> str | None:
    """Projects were edited on Windows too."""
    written = fields.text(key)
    return written.replace("\\", "/") if written else None


def _secrets(fields: Fields) -> tuple[str, ...]:
    names: list[str] = []
    for item in fields.texts("Secrets", "NAME") or ():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", item.text, re.ASCII):
            # The text may be the secret itself: it is not repeated.
            fields.error(
                "Secrets",
                "an item is not the name of a variable",
                "Write the name only, never the value.",
                item,
            )
        elif item.text not in names:
            names.append(item.text)
    return tuple(names)


def _globs(fields: Fields, key: str, example: str, checked: Callable[[str], str]) -> tuple[str, ...]:
    found = []
    for item in fields.texts(key, example) or ():
        try:
            found.append(checked(item.text))
        except UsageError as error:
            fields.error(key, error.message.rstrip("."), error.hint, item)
    return tuple(found)


def _limit(fields: Fields) -> int | None:
    written = fields.text("OutputsLimit")
    try:
        return None if written is None else parse_limit(written)
    except UsageError as error:
        fields.error("OutputsLimit", error.message.rstrip("."), error.hint)
        return None


def _duration(fields: Fields, key: str, least: float) -> float | None:
    written = fields.text(key)
    if written is None:
        return None
    try:
        seconds = parse_duration(written)
    except UsageError as error:
        fields.error(key, error.message.rstrip("."), error.hint)
        return None
    if seconds < least:
        fields.error(key, f"`{written}` is too short", "Write it like 45s, 10m, 1h30m or 2d.")
        return None
    return seconds


def _say_what_is_easily_missed(fields: Fields, configuration: RunConfiguration) -> None:
    if fields.lacks("Framework"):
        fields.warn("Framework", "missing, which means PySpark", "Write `Framework: Python` for a Python script.")
    for name in configuration.secrets:
        if name in configuration.environment_variables:
            message = f"`{name}` is under EnvironmentVariables too, and the secret's value is the one used"
            fields.warn("Secrets", message, f"Remove `{name}` there.")
