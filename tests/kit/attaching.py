"""Typing `computetarget attach remote` for a box, and what it leaves on both sides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit.boxes import Box

Run = Callable[..., Any]
PASSWORD = "correct-horse-battery-9"


def attach(holdfast: Run, box: Box, *words: str, env: dict[str, str] | None = None) -> Any:
    """By its name if the client's configuration has a key for it, else by address and user."""
    place = [box.name] if box.key is not None else [box.address, "--username", box.account.name]
    given = ["--name", "gpu1", "--address", *place, *words]
    return holdfast("computetarget", "attach", "remote", *given, env={**box.environment, **(env or {})})


def written(project: Path) -> list[str]:
    """The configuration files of a project, without its id."""
    folder = project / "aml_config"
    names = sorted(each.name for each in folder.iterdir()) if folder.exists() else []
    return [name for name in names if name != "project.json"]


def compute(project: Path) -> str:
    return (project / "aml_config" / "gpu1.compute").read_text()


def authorized(box: Box) -> str:
    path = box.account.home / ".ssh" / "authorized_keys"
    return path.read_text() if path.exists() else ""


def everything(folder: Path) -> list[str]:
    """Everything below a folder, except what shells and interpreters leave behind."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return sorted(str(path) for path in found if not path.name.endswith(("_history", ".pyc")) and path.name != "units")


def own_keys(home: Path) -> list[Path]:
    """Keys that Holdfast has made on this side."""
    return sorted((home / ".holdfast" / "keys").glob("*"))
