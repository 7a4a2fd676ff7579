"""Choosing packages here for a machine that reaches no index: uv resolves for its platform and its Python, and says
where the files are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.environments.locks import FORMAT, Lock
from holdfast.environments.package_indexes import complaint, needs_newer_driver
from holdfast.environments.platforms import uv_platform
from holdfast.environments.wheel_files import WheelFile, read_wheel_files
from holdfast.errors import PreparationError
from holdfast.farside.environments.complaints import NETWORK
from holdfast.farside.environments.locks import torch_backend
from holdfast.frozen import dataclass, replace
from holdfast.plan import EnvironmentPlan

_WANTED, _LIMITS, _LOCK, _FILES = "requirements.in", "constraints.in", "requirements.txt", "pylock.toml"
_NO_WHEEL = ("no usable wheels", "no wheels with a matching", "building source distributions", "download and build")


@dataclass(frozen=True)
class Machine:
    """What packages are chosen for: `platform` as the far side names it, `python` a full version, `driver` that of
    NVIDIA's GPUs, if there is one."""

    platform: str
    python: str
    driver: str = ""

    def __str__(self) -> str:
        return f"{self.platform} with Python {self.python}"


@dataclass(frozen=True)
class Installer:
    """uv on this machine: its `program`, its `variables`, the `secrets` that the spec's addresses need beside them, and
    the `project` that local wheels are in."""

    program: str
    variables: Mapping[str, str]
    secrets: Mapping[str, str]
    project: Path

    def __repr__(self) -> str:
        return f"Installer({self.program})"


def resolve_for(machine: Machine, plan: EnvironmentPlan, uv: Installer) -> Lock:
    """The lock of what `plan` asks for. Versions that its spec has on other machines are kept where they fit."""
    backend = ""
    if plan.locked:
        text = "\n".join(line for line in plan.locked.splitlines() if not line.startswith("-"))
    elif plan.requirements:
        text = _compiled(machine, plan, uv, [])
        if machine.driver and needs_newer_driver(text, machine.driver):
            fitting = replace(uv, variables={**uv.variables, "UV_CUDA_DRIVER_VERSION": machine.driver})
            backend = "auto"
            text = _compiled(machine, plan, fitting, ["--torch-backend", backend])
    else:
        text = ""
    lock = {"format": FORMAT, "spec": plan.spec, "platform": machine.platform, "python": machine.python}
    return lock | {"requirements": text, "conda": [], "backend": backend}


def wheel_files(lock: Lock, machine: Machine, plan: EnvironmentPlan, uv: Installer) -> tuple[WheelFile, ...]:
    """Where the packages of a lock are; asks the indexes. Not those that lie in the project."""
    text = str(lock["requirements"])
    if not text.strip():
        return ()
    _refuse_repositories(text)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as made:
        folder = Path(made).resolve()
        _write(folder / _LOCK, [*plan.options, text])
        words = [*torch_backend(dict(lock)), "--no-deps", "--format", "pylock.toml", "--output-file", _FILES]
        _run(uv, folder, [_LOCK, *words, *_arguments(machine, plan)], plan, machine)
        return read_wheel_files((folder / _FILES).read_text(encoding="utf-8"), text, folder, uv.project)


def _compiled(machine: Machine, plan: EnvironmentPlan, uv: Installer, more: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="holdfast-") as made:
        folder = Path(made).resolve()
        _write(folder / _WANTED, [*plan.options, *(text for text, _ in plan.requirements)])
        words = [_WANTED, *more, "--generate-hashes", "--no-header", "--output-file", _LOCK]
        if plan.constraints:
            _write(folder / _LIMITS, [text for text, _ in plan.constraints])
            words += ["--constraint", _LIMITS]
        if plan.locks and not plan.upgrade:
            _write(folder / _LOCK, [str(plan.locks[0]["requirements"])])
        _run(uv, folder, [*words, *_arguments(machine, plan)], plan, machine)
        return (folder / _LOCK).read_text(encoding="utf-8")


def _arguments(machine: Machine, plan: EnvironmentPlan) -> list[str]:
    target = ["--python-platform", uv_platform(machine.platform), "--python-version", machine.python]
    own = ["--python", sys.executable, "--no-python-downloads", "--quiet"]
    several = any(each.startswith("--extra-index-url") for each in plan.options)
    strategy = ["--index-strategy", "unsafe-best-match"] if several else []
    return [*target, "--only-binary", ":all:", *own, *strategy, *plan.arguments]


def _refuse_repositories(requirements: str) -> None:
    found = re.search(r"^(?P<name>\S+) @ git\+", requirements, re.MULTILINE)
    if found:
        raise PreparationError(
            f"The package `{found['name']}` comes out of a repository of Git's, and only wheels can be sent.",
            "Build a wheel of it (uv build --wheel), put it into the project and name its path.",
        )


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _run(uv: Installer, folder: Path, words: Sequence[str], plan: EnvironmentPlan, machine: Machine) -> None:
    own = {"HOLDFAST_FILES": os.fspath(uv.project), "UV_NO_PROJECT": "1", "NO_COLOR": "1"}
    command, variables = [uv.program, "pip", "compile", *words], {**uv.variables, **own, **uv.secrets}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        output = done.stderr
        for value in filter(None, uv.secrets.values()):
            output = output.replace(value, "***")
        raise _failure(output, plan, machine)


def _failure(output: str, plan: EnvironmentPlan, machine: Machine) -> PreparationError:
    found, low = complaint(output, plan.requirements), output.lower()
    place = f" (asked for in {found.where})" if found.where else ""
    reason = f"{found.reason.rstrip('. ')}{place}."
    hints = [line.partition(":")[2].strip() for line in output.splitlines() if line.lower().startswith("hint:")]
    if any(word in low for word in _NO_WHEEL):
        said = f"{hints[0].rstrip('.')}. " if hints and "no-build" not in hints[0] else ""
        return PreparationError(
            f"There is no wheel for {machine}: {reason}",
            f"{said}Ask for a version that has one, pin another Python, or build a wheel yourself (uv build --wheel), "
            "put it into the project and name its path.",
        )
    if any(word in low for word in NETWORK) and "no solution found" not in low:
        return PreparationError(
            f"This machine does not reach the package index: {reason}",
            "Check its network, and the settings that pip and uv go by: HTTPS_PROXY, SSL_CERT_FILE, pip.conf, uv.toml.",
        )
    return PreparationError(f"The packages cannot be chosen for {machine}: {reason}", found.remedy)
