"""A zip for a bug report: the record, the plan, the ends of the logs, the versions; no secrets, no values of
variables."""

from __future__ import annotations

import json
import platform
import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.errors import StorageError
from holdfast.history.folder import RunFolders
from holdfast.project.folder import Project
from holdfast.workbench.surroundings import Surroundings

_LOG_TAIL = 1 << 20
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW", re.IGNORECASE)
MASK = "***"


def write_diagnostics(project: Project, run: str, destination: Path, around: Surroundings) -> list[str]:
    """Returns the names in the zip. The script's own output is in it: it is what a report is about."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    folder = folders.path(run_id)
    contents = {
        "versions.json": json.dumps(_versions(), indent=1).encode(),
        "submission.json": _json_file(folder / "submission.json"),
        "plan.json": json.dumps(_without_values(folders.plan(run_id)), indent=1).encode(),
        "configuration.json": json.dumps(_without_values(folders.configuration(run_id)), indent=1).encode(),
        "journal.jsonl": _tail(folder / "journal.jsonl"),
        "driver_log": _tail(folder / "driver_log"),
        "control_log": _tail(folder / "control_log"),
    }
    hidden = _values_to_hide(folders, run_id, around)
    try:
        with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in contents.items():
                archive.writestr(f"{run_id}/{name}", _masked(data, hidden))
    except OSError as error:
        raise StorageError(
            f"`{destination}` cannot be written: {error.strerror}.", "Name another file with --file."
        ) from error
    return sorted(contents)


def _versions() -> dict[str, str]:
    return {"holdfast": __version__, "python": sys.version, "system": platform.platform()}


def _without_values(record: Any, inside: bool = False) -> Any:
    """The record with the values of all environment variables masked, whoever set them."""
    if isinstance(record, Mapping):
        return {
            key: dict.fromkeys(value, MASK)
            if key in ("environment", "environment_variables") and isinstance(value, Mapping) and "steps" not in value
            else _without_values(value)
            for key, value in record.items()
        }
    if isinstance(record, list):
        return [_without_values(value) for value in record]
    return record


def _values_to_hide(folders: RunFolders, run_id: str, around: Surroundings) -> list[bytes]:
    """Secrets that this shell still has, and variables of the run configuration that look like one."""
    names = folders.plan(run_id).get("secrets", [])
    configured = folders.configuration(run_id).get("run_configuration", {}).get("environment_variables") or {}
    values = [around.environment.get(name, "") for name in names]
    values += [str(value) for name, value in configured.items() if _SECRET_NAME.search(name)]
    return sorted((value.encode() for value in values if len(value) >= 4), key=len, reverse=True)


def _masked(data: bytes, hidden: list[bytes]) -> bytes:
    for value in hidden:
        data = data.replace(value, MASK.encode())
    return _CREDENTIALS.sub(f"{MASK}@", data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _json_file(path: Path) -> bytes:
    return path.read_bytes()


def _tail(path: Path) -> bytes:
    try:
        return path.read_bytes()[-_LOG_TAIL:]
    except FileNotFoundError:
        return b""
