"""New projects: each folder beside this file is one, copied as it is.

A file's `{{project}}` becomes the project's name. Everything is written beside its final place first, so that
a failure leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from holdfast.errors import ProjectError, StorageError, UnknownName, UsageError
from holdfast.project.folder import CONFIGURATION_FOLDER, IDENTITY_FILE, Project, new_id, render_identity

_DESCRIPTIONS = {
    "blank": "a script that logs one metric and writes one file, without dependencies",
    "digits": "handwritten digits with scikit-learn: metrics by step, a model and a picture",
}


def template_names() -> list[tuple[str, str]]:
    """Name and one-line description of every template, sorted."""
    return sorted(_DESCRIPTIONS.items())


def create_project(path: Path, name: str, template: str, home: Path) -> Project:
    """Make the project `name` in the folder `path`, which must be new or empty. `home`: Holdfast's on this machine."""
    if template not in _DESCRIPTIONS:
        raise UnknownName("template", template, _DESCRIPTIONS, "See `holdfast project sample list`.")
    if not name.strip() or not name.isprintable() or "/" in name or "\\" in name or name in (".", ".."):
        raise UsageError(f"`{name}` cannot be a project's name.", "Use letters, digits, spaces, `-` and `_`.")
    folder = Path(os.path.abspath(path))  # not resolved: symbolic links stay as the user typed them
    _require_empty(folder)
    identity = new_id()
    try:
        _write(folder, name, template, identity)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "Choose a folder that you may write to, with `--path`."
        raise StorageError(f"The project cannot be written to `{folder}`: {reason}.", hint) from error
    return Project(folder, identity, name, False, home)


def _require_empty(folder: Path) -> None:
    hint = "Choose another with `--path`. An existing folder needs none of this: run `holdfast submit` in it."
    try:
        if any(folder.iterdir()):
            raise ProjectError(f"`{folder}` is not empty.", hint)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise ProjectError(f"`{folder}` is a file.", hint) from error
    except OSError as error:
        raise StorageError(f"`{folder}` cannot be read: {error.strerror}.", "Check its permissions.") from error


def _write(folder: Path, name: str, template: str, identity: str) -> None:
    existed = os.path.exists(folder)
    unique = f".holdfast-new-{os.urandom(6).hex()}"
    # An empty folder that is there may be a mount point or a working directory: it is filled, not replaced.
    building = folder / unique if existed else folder.with_name(unique)
    building.mkdir(parents=True)
    try:
        _fill(building, name, template, identity)
        if existed:
            _move_up(building, folder)
        else:
            building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _fill(building: Path, name: str, template: str, identity: str) -> None:
    source = Path(__file__).parent / template
    for directory, folders, files in os.walk(source):
        folders[:] = sorted(each for each in folders if each != "__pycache__")
        target = building / Path(directory).relative_to(source)
        target.mkdir(exist_ok=True)
        for file in files:
            text = (Path(directory) / file).read_text(encoding="utf-8")
            (target / file).write_text(text.replace("{{project}}", name), encoding="utf-8", newline="\n")
    identity_file = building / CONFIGURATION_FOLDER / IDENTITY_FILE
    identity_file.write_text(render_identity(identity, name), encoding="utf-8", newline="\n")


def _move_up(building: Path, folder: Path) -> None:
    """`aml_config/` goes last: with it the folder is a project."""
    names = sorted((each.name for each in building.iterdir()), key=lambda each: each == CONFIGURATION_FOLDER)
    moved: list[Path] = []
    try:
        for name in names:
            (building / name).rename(folder / name)
            moved.append(folder / name)
    except OSError:
        for path in reversed(moved):
            path.rename(building / path.name)
        raise
