"""When a script dies on a module: whether the project has it elsewhere, an installed package lacks it, or which package
brings it; and the command that helps."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass
from holdfast.history.run_folder import RunFolders
from holdfast.model import Run
from holdfast.project.package_names import PROGRAMS, package_of
from holdfast.project.packages_search import CONDA_FILES
from holdfast.project.packages_wish import SETUP_FILES, split_parts
from holdfast.project.requirement_lines import normalised
from holdfast.project.runconfig import CONDA_FILE
from holdfast.regular_files import text_if_there
from holdfast.shown_text import pasted

_LACKING = re.compile(
    r"^(?:\[[\w :]{1,30}\]:? ?)?(?:ModuleNotFoundError: |\S{0,300}python[\d.]*: )"
    r"(?:Error while finding module specification for '[\w.]+' \(ModuleNotFoundError: )?"
    r"No module named '?([A-Za-z0-9_.]+)'?",
    re.MULTILINE,
)
_ANOTHER_ERROR = re.compile(
    r"^(?:\[[\w :]{1,30}\]:? ?)?(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt))\b", re.M
)
_OF_LAUNCHERS = ("ChildFailedError", "CalledProcessError")
_DEEPEST = 3
_MOST_FOLDERS = 2000
_LONGEST_MODULE = 4096


def missing_module(text: str) -> str:
    """The module that a run's last words say is missing; empty where it did not end by that."""
    last = next(reversed(list(_LACKING.finditer(text))), None)
    if last is None or len(last[1]) > _LONGEST_MODULE:
        return ""
    later = (found[1] for found in _ANOTHER_ERROR.finditer(text, last.end()))
    has_launcher = False
    for each in later:
        if each not in _OF_LAUNCHERS:
            return ""
        has_launcher = True
    if not all(last[1].rstrip(".").split(".")):
        return ""
    is_last = not text[last.end() :].strip(" \t\r\n)'")
    return last[1].strip(".") if is_last or has_launcher else ""


def since_missing_module(text: str) -> str:
    """The words about the module that ended the run, without what it said before; else the whole text."""
    return text[[found.start() for found in _LACKING.finditer(text)][-1] :] if missing_module(text) else text


def missing_module_sentence(root: Path, folders: RunFolders, run: Run, text: str) -> str:
    """Empty where the run did not end by a missing module."""
    module = missing_module(text)
    if not module:
        return ""
    own = _in_project(root, module, run.submission.folder)
    if own is not None:
        return own
    found = _installed(module, run)
    if found:
        return found
    if module.split(".")[0] == "azureml":
        return _AZUREML % module
    return _to_add(root, _record(folders, run), module, run)


def missing_program_sentence(root: Path, folders: RunFolders, run: Run, why: str) -> str:
    """`why` the command could not be started. Empty where that is not a known program that is missing."""
    found = re.match(r"there is no program `([\w.-]{1,40})`", why)
    package = PROGRAMS.get(found[1]) if found else None
    if found is None or package is None:
        return ""
    add = _where_to_add(root, _record(folders, run).file, package)
    brings = f"The package {package} provides `{found[1]}`."
    if run.environment is not None:
        return f"{brings} {add[:1].upper()}{add[1:]}"
    return f"{brings} Install it on the target, or {add}, and submit with -d FILE"


def _in_project(root: Path, module: str, folder: str) -> str | None:
    """None where the project has nothing of the module's name."""
    top = module.split(".")[0]
    for place in _places(root, folder):
        package = root / place / top
        is_file = os.path.isfile(f"{package}.py")
        if not is_file and not _is_package(package):
            continue
        path = posixpath.join(place, top + (".py" if is_file else ""))
        if _has(root / place, module):
            relative = os.path.relpath(place or ".", folder or ".")
            return (
                f"`{top}` is in the project, as {path}, but its folder is not on Python's path. "
                f"Add it: --env PYTHONPATH={pasted(relative)}"
            )
        if place in ("", folder):
            return (
                f"Python takes `{top}` from the project ({path}), which has no `{module}`. If you mean the "
                f"installed package, rename {path}."
            )
    return None


def _places(root: Path, folder: str) -> Iterator[str]:
    """Folders of the project that may hold modules, the likeliest first, a few levels deep."""
    yield from dict.fromkeys((folder, "", "src"))
    waiting, seen = [""], 0
    while waiting and seen < _MOST_FOLDERS:
        place = waiting.pop(0)
        try:
            with os.scandir(root / place) as found:
                names = sorted(each.name for each in found if each.is_dir(follow_symlinks=False))
        except OSError:
            continue
        below = [posixpath.join(place, name) for name in names if not name.startswith(".") and name not in _NO_CODE]
        seen += len(below)
        yield from below
        if place.count("/") < _DEEPEST - 2:
            waiting += below


_NO_CODE = ("__pycache__", "node_modules", "outputs", "venv", "env")


def _is_package(folder: Path) -> bool:
    try:
        return any(name.endswith(".py") for name in os.listdir(folder))
    except OSError:
        return False


def _has(place: Path, module: str) -> bool:
    path = os.path.join(place, *module.split("."))
    return os.path.isfile(f"{path}.py") or os.path.isdir(path)


def _installed(module: str, run: Run) -> str:
    """Where the package is there, and only the part is not."""
    if "." not in module:
        return ""
    versions = {normalised(name): version for name, _, version in (each.partition("==") for each in run.packages)}
    package = package_of(module.split(".")[0])
    version = versions.get(normalised(package))
    if version is None:
        return ""
    return (
        f"{package} {version} is installed but has no `{module}`: the script needs another version. "
        f"Pin that one: {package}==VERSION"
    )


_AZUREML = (
    "`%s` is part of Azure's SDK, of which Holdfast provides only `azureml.logging`. "
    "Use `import holdfast` (log, upload, current_run), or add azureml-core to the packages."
)


@dataclass(frozen=True)
class _Recorded:
    """`file` is that of the packages, `python` the path of the user's own Python where it is known here."""

    file: str
    python: str


def _record(folders: RunFolders, run: Run) -> _Recorded:
    """As the run was submitted."""
    try:
        written = str(folders.configuration(run.run_id)["run_configuration"]["conda_dependencies_file"])
    except (HoldfastError, LookupError, TypeError):
        written = CONDA_FILE
    try:
        command: Any = folders.plan(run.run_id).get("command")
        python = command.get("python") if isinstance(command, Mapping) else ""
    except HoldfastError:
        python = ""
    return _Recorded(split_parts(written)[0], python if isinstance(python, str) else "")


def _to_add(root: Path, recorded: _Recorded, module: str, run: Run) -> str:
    package = package_of(module)
    if not package:
        return f"No package provides `{module}`: see its project's page for how to install it."
    same = normalised(package) == normalised(module.split(".")[0])
    brings = f"there is no `{module}`" if same else f"there is no `{module}`, which the package {package} provides"
    if run.environment is None:
        own = "your own Python" if run.submission.target_type == "local" else "the machine's own Python"
        whose = "the image" if run.image is not None else own
        where = f" ({recorded.python})" if recorded.python and run.image is None else ""
        first = f"The target `{run.submission.target}` runs on {whose}{where}, where {brings}. "
        install = f"{pasted(recorded.python)} -m pip install {pasted(package)}" if recorded.python else ""
        file = _file_of(root, recorded.file)
        add = "" if _names(root / file, package) else f"{_where_to_add(root, recorded.file, package)}, and "
        build = f"To build an environment: {add}submit with -d {pasted(file)}"
        return f"{first}Install it there: {install}\n{build}" if install else f"{first}{build}"
    extra = _extra_with(root, recorded.file, package)
    if extra:
        return f"In the environment {brings}. The project has it in the extra `{extra}`: --extra {pasted(extra)}"
    add = _where_to_add(root, recorded.file, package)
    return f"In the environment {brings}. {add[:1].upper()}{add[1:]}"


def _file_of(root: Path, file: str) -> str:
    """Where packages are to be named: the run's file, or one to write."""
    if os.path.isfile(root / file):
        return file
    return next((each for each in _USUAL if os.path.isfile(root / each)), "requirements.txt")


def _names(file: Path, package: str) -> bool:
    """Whether the word is in the file, which is about packages."""
    wanted = normalised(re.split(r"[<=]", package)[0])
    return any(normalised(word) == wanted for word in re.findall(r"[\w.-]+", text_if_there(file, _LARGEST)))


_LARGEST = 4_000_000
_USUAL = ("uv.lock", "pyproject.toml", "requirements.txt", *CONDA_FILES, *SETUP_FILES)


def _where_to_add(root: Path, written: str, package: str) -> str:
    file = _file_of(root, written)
    name = posixpath.basename(file)
    if name == "uv.lock":
        return f"add it: uv add {pasted(package)}"
    if name == "pyproject.toml":
        return f'add "{package}" to `dependencies` in {file}'
    if name in SETUP_FILES:
        return f"add {package} to `install_requires` in {file}"
    if name.endswith((".yml", ".yaml")):
        return f"add `- {package}` below `- pip:` in {file}"
    return f"add a line to {file}: {package}"


def _extra_with(root: Path, file: str, package: str) -> str:
    """The extra of the project that names the package; empty for none."""
    if posixpath.basename(file) not in ("uv.lock", "pyproject.toml"):
        return ""
    from holdfast.project.pyproject import extras_in

    wanted = normalised(re.split(r"[<=]", package)[0])
    every = extras_in(root, posixpath.join(posixpath.dirname(file), "pyproject.toml"))
    return next((name for name, names in every.items() if wanted in names), "")
