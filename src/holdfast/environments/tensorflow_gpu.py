"""`tensorflow-gpu`: up to 2.11 a real package for old Pythons; 2.12 is empty and refuses to install.

Whoever does not exclude 2.12 gets it, whatever the Python: an installer takes the newest. `tensorflow[and-cuda]`, its
successor, brings CUDA with it from 2.14 on, for Python 3.9 and newer.
"""

from __future__ import annotations

import re

from holdfast.environments.findings import Finding
from holdfast.environments.python_ranges import Need, allowed_minors
from holdfast.environments.version_ranges import allows
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.project.requirement_lines import Package

EMPTY = "2.12.0"
OLDEST_WITH_CUDA = 9
"""Of Python 3."""

_WHEELS = (
    ("0.12.0", 4, 5),
    ("0.12.1 1.0.0 1.0.1 1.1.0 1.2.0 1.2.1 1.3.0 1.4.0 1.4.1 1.5.0 1.5.1 1.6.0 1.7.0 1.7.1 1.8.0 1.9.0", 3, 6),
    ("1.10.0 1.10.1 1.11.0 1.12.0 1.12.2 1.12.3", 3, 6),
    ("1.13.1 1.13.2 1.14.0", 3, 7),
    ("1.15.0 1.15.2 1.15.3 1.15.4 2.0.0 2.0.1 2.0.2 2.0.3 2.1.0 2.1.1 2.1.2", 5, 7),
    ("1.15.5 2.0.4 2.1.3 2.1.4", 6, 7),
    ("2.2.0 2.2.1 2.3.0 2.3.1", 5, 8),
    ("2.2.2 2.2.3 2.3.2 2.3.3 2.3.4 2.4.0 2.4.1 2.4.2 2.4.3 2.4.4", 6, 8),
    ("2.5.0 2.5.1 2.5.2 2.6.0 2.6.1 2.6.2", 6, 9),
    ("2.5.3 2.6.3 2.6.4 2.6.5 2.7.0 2.7.1 2.7.2 2.7.3 2.7.4", 7, 9),
    ("2.8.0 2.8.1 2.8.2 2.8.3 2.8.4 2.9.0 2.9.1 2.9.2 2.9.3 2.10.0 2.10.1 2.11.0", 7, 10),
)
"""The wheels for Linux on the package index: versions, and the first and last minor version of Python 3."""


def find_tensorflow_gpu(spec: EnvironmentSpec, line: Requirement, package: Package) -> list[Finding]:
    """For `tensorflow-gpu` and `tf-nightly-gpu` by name, where the empty one would be chosen."""
    if not allows(package.specifier, EMPTY):
        return []
    sentence = f"`{package.name}` {EMPTY}, the last one, is empty and refuses to install."
    wanted, remedy = _wanted(spec, package)
    if wanted is not None and package.marker:
        wanted = f"{wanted} ; {package.marker}"
    place = (line.file, line.line, wanted, line.text)
    return [Finding("gone", package.name, sentence, remedy, "error", *place)]


def need_of_tensorflow_gpu(line: Requirement, package: Package) -> Need | None:
    """Which Pythons the real ones are for, of those that the line allows."""
    if package.name != "tensorflow-gpu" or allows(package.specifier, EMPTY) or "python" in package.marker:
        return None
    minors = _minors(package.specifier)
    return Need(line, f"tensorflow-gpu{package.specifier}", tuple(sorted(minors))) if minors else None


def _wanted(spec: EnvironmentSpec, package: Package) -> tuple[str | None, str]:
    successor = "tf-nightly[and-cuda]" if package.name.startswith("tf-nightly") else "tensorflow[and-cuda]"
    minors = allowed_minors(spec)
    if not minors or max(minors) >= OLDEST_WITH_CUDA:
        lower = package.specifier if re.fullmatch(r"\s*>=?\s*[\d.]+\s*", package.specifier) else ""
        return f"{successor}{lower}", f"Write `{successor}{lower}`."
    fitting = [
        version
        for versions, first, last in _WHEELS
        for version in versions.split()
        if first <= max(minors) <= last and allows(package.specifier, version)
    ]
    if package.name != "tensorflow-gpu" or not fitting:
        return None, f"Write `python=3.11` and `{successor}`."
    newest = max(fitting, key=lambda each: [int(part) for part in each.split(".")])
    return f"tensorflow-gpu=={newest}", f"Write `tensorflow-gpu=={newest}`, the last for Python {spec.python}."


def _minors(specifier: str) -> set[int]:
    """All versions of Python for which a version that the specifier allows has a wheel."""
    return {
        minor
        for versions, first, last in _WHEELS
        for version in versions.split()
        if allows(specifier, version)
        for minor in range(first, last + 1)
    }
