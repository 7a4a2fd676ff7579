"""Promoting an artifact: `assets/NAME.link` names a file of a run, and is committed together with the code.

The link has no content, only its place and its digest; `download_asset` brings the content and checks it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from holdfast.codec import Malformed, encode, recover
from holdfast.errors import ProjectError, UnknownName, UsageError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass
from holdfast.history.run_folder import RunFolders
from holdfast.project.folder import Project
from holdfast.regular_files import NotJson, read_json
from holdfast.whole_files import storage_error, write_whole
from holdfast.workbench.records.artifacts import copy_whole, digest_of, find_artifact, place_in

_LINK_FORMAT = 1
_ASSETS = "assets"
_LINK_SUFFIX = ".link"
_LARGEST = 1_000_000
"""Bytes of a link: the file may come from a clone."""


@dataclass(frozen=True)
class Link:
    """What `assets/NAME.link` says."""

    run_id: str
    artifact: str
    sha256: str
    size: int
    project_id: str
    format: int = _LINK_FORMAT


@dataclass(frozen=True)
class Promotion:
    """`replaced` is the link that had this name before, if it led elsewhere."""

    file: Path
    link: Link
    replaced: Link | None


def promote(project: Project, run_id: str, artifact: str, name: str) -> Promotion:
    """Write the link. A name that is promoted again leads to the new artifact from then on. The name may be given as
    the file is called, `N.link`."""
    name = name.removesuffix(_LINK_SUFFIX)
    if not name or name != Path(name).name or name.startswith("."):
        raise UsageError(f"`{name}` is not a name for an asset.", "Give a file name without folders: -n model.pkl")
    found = find_artifact(project, run_id, artifact)
    if reserved_path([found.file.name]) is not None:
        raise UsageError(
            f"`{found.path}` cannot be an asset: git or Holdfast keeps the name for itself.",
            "Let the script write it under another name.",
        )
    link = Link(run_id, found.path, digest_of(found.file), found.size, project.id)
    file = project.root / _ASSETS / f"{name}{_LINK_SUFFIX}"
    replaced = _existing(file)
    try:
        file.parent.mkdir(exist_ok=True)
        write_whole(file, json.dumps(encode(link), indent=1).encode("ascii") + b"\n", is_durable=True)
    except OSError as error:
        raise storage_error(error, "write the link", file) from error
    return Promotion(file, link, replaced if replaced != link else None)


def download_asset(project: Project, file: Path, destination: Path, overwrite: bool = False) -> Path:
    """Copy what a link leads to into the folder `destination`, checked by its digest; the copy's path."""
    link = read_link(file)
    if link.project_id and project.id and link.project_id != project.id:
        raise ProjectError(
            f"`{file}` leads to a run of another project.", "Run the command in the project that promoted it."
        )
    if link.run_id not in RunFolders(project.state_directory).names():
        raise UnknownName(
            "run",
            link.run_id,
            (),
            f"`{file}` leads to it. Its files are in the copy of the project where it was run.",
        )
    source = find_artifact(project, link.run_id, link.artifact)
    target = place_in(destination, source.file.name)
    if os.path.lexists(target) and not overwrite:
        raise UsageError(f"Already there: `{target}`", "Replace it with --overwrite, or choose another folder with -d.")
    copy_whole(source.file, target, link.sha256)
    return target


def read_link(file: Path) -> Link:
    try:
        data: Any = read_json(file, _LARGEST)
    except FileNotFoundError as error:
        folder = file.parent
        known = [str(folder / each.name) for each in folder.glob("*.link")] if os.path.isdir(folder) else []
        raise UnknownName("link", str(file), known, "A link is written by: holdfast history promote") from error
    except OSError as error:
        raise storage_error(error, "read the link", file) from error
    except NotJson as error:
        raise _not_a_link(file) from error
    version = data.get("format") if isinstance(data, dict) else None
    if isinstance(version, int) and version > _LINK_FORMAT:
        raise ProjectError(f"`{file}` was written by a later version of Holdfast.", "Update Holdfast.")
    try:
        return recover(Link, data)
    except Malformed as error:
        raise _not_a_link(file) from error


def _existing(file: Path) -> Link | None:
    try:
        return read_link(file)
    except (UnknownName, ProjectError):
        return None


def _not_a_link(file: Path) -> ProjectError:
    return ProjectError(
        f"`{file}` is not a link that Holdfast wrote.", "Promote the artifact again: holdfast history promote"
    )
