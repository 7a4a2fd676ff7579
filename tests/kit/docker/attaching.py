"""Typing `computetarget attach docker` and `attach remotedocker`, and what they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit.boxes import Box
from kit.docker.daemon import Daemon
from kit.docker.images import PYTHON

Run = Callable[..., Any]
_PATIENCE = 180
"""Seconds, enough for a busy machine."""


def attach_here(holdfast: Run, *words: str, image: str = PYTHON, **options: Any) -> Any:
    given = ["--name", "here", "--image", image, *words]
    return holdfast("computetarget", "attach", "docker", *given, **{"timeout": _PATIENCE, **options})


def attach_there(holdfast: Run, box: Box, *words: str, image: str = PYTHON, **options: Any) -> Any:
    given = ["--name", "gpu1", "--address", box.name, "--image", image, *words]
    about = {"env": box.environment, "timeout": _PATIENCE, **options}
    return holdfast("computetarget", "attach", "remotedocker", *given, **about)


def write_here(project: Path, *lines: str, image: str = PYTHON) -> None:
    """The target `here` as attach writes it, without trying it."""
    _write(project, "here", "type: docker", f"baseDockerImage: {image}", *lines)


def write_there(project: Path, box: Box, *lines: str, image: str = PYTHON) -> None:
    _write(project, "gpu1", "type: remotedocker", f"address: {box.name}", f"baseDockerImage: {image}", *lines)


def _write(project: Path, name: str, *lines: str) -> None:
    folder = project / "aml_config"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.compute").write_text("".join(f"{line}\n" for line in lines))
    (folder / f"{name}.runconfig").write_text(f"Target: {name}\nFramework: Python\n")


def keys_of(project: Path, name: str) -> dict[str, str]:
    """The lines of the target's file."""
    lines = (project / "aml_config" / f"{name}.compute").read_text().splitlines()
    return {key: value.strip('"') for key, value in (line.split(": ", 1) for line in lines)}


def leave_container(daemon: Daemon, home: Path, run: str) -> str:
    """A container of an unknown run, as a power loss leaves it."""
    name = f"holdfast-{run}"
    labels = [f"holdfast.home={home}", f"holdfast.run={run}", "holdfast.project=p"]
    words = [word for label in labels for word in ("--label", label)]
    daemon.run("run", "-d", "--network", "none", "--name", name, *words, PYTHON, "sleep", "600")
    return name
