"""A zip for a bug report: the record, the plan, the ends of the logs, the versions; no secrets, no values of
variables."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.codec import recover
from holdfast.errors import StorageError
from holdfast.frozen import dataclass, field
from holdfast.history.run_folder import RunFolders
from holdfast.project.credentials import looks_secret
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context

MASK = "***"
_SHORTEST_HIDDEN = 4
"""Shorter values stand in too many words to be taken out of them."""

_LOG_TAIL = 1 << 20
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_SHORT_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:_-]{0,6}")
_EVERYDAY = frozenset(
    ("true", "false", "none", "null", "auto", "default", "info", "debug", "warn", "warning", "error", "utf8", "utf-8")
)
"""Hiding these would spoil the logs and hide nothing."""


@dataclass(frozen=True)
class _Plan:
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class _RunConfiguration:
    environment_variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _ComputeTarget:
    docker_arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class _Configuration:
    """What is asked of a run's configuration: what has another shape counts as empty."""

    run_configuration: _RunConfiguration = field(default_factory=_RunConfiguration)
    compute_target: _ComputeTarget = field(default_factory=_ComputeTarget)


def write_diagnostics(project: Project, run: str, destination: Path, context: Context) -> list[str]:
    """Returns the names in the zip. The script's own output is in it: it is what a report is about."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    folder = folders.path(run_id)
    hiding = _Hiding(tuple(_values_to_hide(folders, run_id, context)))
    contents = {
        "versions.json": json.dumps(_versions(), indent=1).encode(),
        "submission.json": hiding.in_json((folder / "submission.json").read_bytes(), indent=1),
        "plan.json": hiding.in_json((folder / "plan.json").read_bytes(), indent=1),
        "configuration.json": hiding.in_json((folder / "configuration.json").read_bytes(), indent=1),
        "journal.jsonl": b"".join(map(hiding.in_json, _tail(folder / "journal.jsonl").splitlines(keepends=True))),
        "driver_log": hiding.in_bytes(_tail(folder / "driver_log")),
        "control_log": hiding.in_bytes(_tail(folder / "control_log")),
    }
    try:
        with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in contents.items():
                archive.writestr(f"{run_id}/{name}", data)
    except OSError as error:
        raise StorageError(
            f"`{destination}` cannot be written: {error.strerror}.", "Name another file with --file."
        ) from error
    return sorted(contents)


def _versions() -> dict[str, str]:
    return {"holdfast": __version__, "python": sys.version, "system": platform.platform()}


def _values_to_hide(folders: RunFolders, run_id: str, context: Context) -> list[str]:
    """The secrets, as far as this shell still has them, and the values of the run configuration's variables: whatever
    they are called, they are private. Longest first, so that none leaves a part of another."""
    configuration = recover(_Configuration, folders.configuration(run_id))
    configured = configuration.run_configuration.environment_variables
    values = [context.environment.get(name, "") for name in recover(_Plan, folders.plan(run_id)).secrets]
    values += [str(value) for name, value in configured.items() if looks_secret(name) or not _is_everyday(str(value))]
    values += _in_docker_arguments(configuration.compute_target.docker_arguments)
    lines = {line for value in values for line in (value, *value.splitlines()) if len(line) >= _SHORTEST_HIDDEN}
    escaped = {json.dumps(line, ensure_ascii=is_ascii)[1:-1] for line in lines for is_ascii in (True, False)}
    return sorted(lines | escaped, key=len, reverse=True)


def _in_docker_arguments(words: Iterable[Any]) -> Iterator[str]:
    """Values of secrets that were given to `docker run`, in spite of the warning."""
    for word in words:
        name, _, value = str(word).removeprefix("--env=").removeprefix("-e").partition("=")
        if looks_secret(name):
            yield value


def _is_everyday(value: str) -> bool:
    return value.lower() in _EVERYDAY or _SHORT_NUMBER.fullmatch(value) is not None


@dataclass(frozen=True)
class _Hiding:
    values: tuple[str, ...]

    def in_text(self, text: str) -> str:
        for value in self.values:
            text = text.replace(value, MASK)
        return _CREDENTIALS.sub(f"{MASK}@", text)

    def in_bytes(self, data: bytes) -> bytes:
        return self.in_text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def in_record(self, record: Any) -> Any:
        """The record with every text hidden in, and the values of all environment variables masked, no matter who set
        them. Keys and numbers stay, so that it can still be read."""
        if isinstance(record, Mapping):
            return {
                key: dict.fromkeys(value, MASK) if _are_variables(key, value) else self.in_record(value)
                for key, value in record.items()
            }
        if isinstance(record, list):
            return [self.in_record(value) for value in record]
        return self.in_text(record) if isinstance(record, str) else record

    def in_json(self, data: bytes, indent: int | None = None) -> bytes:
        """One JSON text; what is none, because it was damaged, is masked as it is."""
        try:
            return json.dumps(self.in_record(json.loads(data)), indent=indent).encode() + b"\n"
        except (ValueError, RecursionError):
            return self.in_bytes(data)


def _are_variables(key: str, value: Any) -> bool:
    of_plan = {"spec", "step", "steps"}  # of an environment to build
    is_plan = isinstance(value, Mapping) and not of_plan.isdisjoint(value)
    return key in ("environment", "environment_variables") and isinstance(value, Mapping) and not is_plan


def _tail(path: Path) -> bytes:
    """The end of the file in whole lines: a secret that is cut in two would not be found."""
    try:
        with path.open("rb") as source:
            skipped = max(0, source.seek(0, os.SEEK_END) - _LOG_TAIL)
            source.seek(skipped)
            data = source.read(_LOG_TAIL)
    except FileNotFoundError:
        return b""
    return data[data.find(b"\n") + 1 :] if skipped else data
