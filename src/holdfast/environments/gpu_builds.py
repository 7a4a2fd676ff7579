"""Lines that ask for a build with which no GPU is used: `tensorflow-gpu`, and builds without CUDA.

`tensorflow-gpu` was up to 2.11 a real package for old Pythons; 2.12 is empty and refuses to install. An installer takes
the newest, so a line that does not exclude 2.12 gets it, whatever the Python. `tensorflow[and-cuda]`, its successor,
brings CUDA with it from 2.14 on, for Python 3.9 and newer.

A build without CUDA is nothing wrong by itself, but not for a run on a GPU. What is written instead is the plain
package, with which the installer takes the build that fits the driver of the machine.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from holdfast.environments.spec_findings import Need, SpecFinding, allowed_minors
from holdfast.environments.version_ranges import allows, release
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.project.requirement_lines import RequiredPackage, parse_wheel_name

_EMPTY = "2.12.0"
_OLDEST_WITH_CUDA = 9
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


def find_tensorflow_gpu(spec: EnvironmentSpec, line: Requirement, package: RequiredPackage) -> list[SpecFinding]:
    """For `tensorflow-gpu` and `tf-nightly-gpu` by name, where the empty one would be chosen."""
    if not allows(package.specifier, _EMPTY):
        return []
    sentence = f"`{package.name}` {_EMPTY}, the last one, is empty and refuses to install."
    wanted, remedy = _wanted(spec, package)
    if wanted is not None and package.marker:
        wanted = f"{wanted} ; {package.marker}"
    place = (line.file, line.line, wanted, line.text)
    return [SpecFinding("gone", package.name, sentence, remedy, "error", *place)]


def need_of_tensorflow_gpu(line: Requirement, package: RequiredPackage) -> Need | None:
    """Which Pythons the real ones are for, of those that the line allows."""
    if package.name != "tensorflow-gpu" or allows(package.specifier, _EMPTY) or "python" in package.marker:
        return None
    minors = {
        minor
        for versions, first, last in _WHEELS
        if any(allows(package.specifier, version) for version in versions.split())
        for minor in range(first, last + 1)
    }
    return Need(line, f"tensorflow-gpu{package.specifier}", tuple(sorted(minors))) if minors else None


def _wanted(spec: EnvironmentSpec, package: RequiredPackage) -> tuple[str | None, str]:
    successor = "tf-nightly[and-cuda]" if package.name.startswith("tf-nightly") else "tensorflow[and-cuda]"
    minors = allowed_minors(spec)
    if not minors or max(minors) >= _OLDEST_WITH_CUDA:
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


_FIRST_WITH_EXTRA = (2, 14)
"""The release of TensorFlow that brings CUDA with the extra `and-cuda`; the ones before take the machine's."""


def find_cpu_build(spec: EnvironmentSpec, line: Requirement, package: RequiredPackage) -> list[SpecFinding]:
    """Of a Python package: by its version (`+cpu`), its name or its extra."""
    if package.location:
        return _of_wheel(line, package)
    specifier, extras = package.specifier, f"[{package.extras}]" if package.extras else ""
    local = re.search(_LOCAL, specifier)
    if local and package.name not in _PYTORCH:
        remedy = f"Name its build for CUDA instead of `{local[0]}`."
        return [_finding(line, package.name, f"`{package.name}{specifier}` is a build for the CPU", remedy, None)]
    if local:
        wanted = f"{package.name}{extras}{re.sub(_LOCAL, '', specifier)}"
    elif package.name in _TENSORFLOW:
        wanted = _tensorflow(spec, package)
    elif package.name == "xgboost-cpu":
        wanted = f"xgboost{extras}{specifier}"
    elif package.name == "jax" and "cpu" in package.extras.split(","):
        others = ("cuda12" if each == "cpu" else each for each in package.extras.split(","))
        wanted = f"jax[{','.join(others)}]{specifier}"
    else:
        return []
    said = specifier if local else extras if package.name == "jax" else ""
    what = f"`{package.name}{said}` is a build for the CPU"
    return [_finding(line, package.name, what, f"Write `{wanted}`.", _whole(wanted, package))]


def find_conda_cpu_build(line: Requirement, name: str) -> list[SpecFinding]:
    """Of a conda package: `cpuonly`, a name that ends so, or the string of a build."""
    if name == "cpuonly":
        return [_finding(line, name, "`cpuonly` keeps PyTorch to its builds for the CPU", "Remove the line.", "")]
    found = re.fullmatch(r"((?:\S+::)?[\w.-]+)(?:\s*(==?)\s*|\s+)([^\s=\[\]]+)(?:\s*=\s*|\s+)([^\s=\[\]]+)", line.text)
    has_build = bool(found) and "cpu" in (found[4] if found else "").lower()
    text = line.text
    if found and has_build:
        text = found[1] if found[3] == "*" else f"{found[1]}{found[2] or '='}{found[3]}"
    elif re.search(r"\[(?:[^\[\],]*,)*[^\[\],=]*\bbuild\s*=[^\[\],]*cpu", text, re.IGNORECASE):
        remedy = "Take `build=` out of the brackets."
        return [_finding(line, name, f"`{text}` is a build for the CPU", remedy, None)]
    if name in _CONDA_NAMES:
        text = re.sub(rf"^((?:\S+::)?){re.escape(name)}", rf"\g<1>{_CONDA_NAMES[name]}", text, flags=re.IGNORECASE)
    if text == line.text:
        return []
    return [_finding(line, name, f"`{line.text}` is a build for the CPU", f"Write `{text}`.", text)]


def find_cpu_index(option: Requirement) -> list[SpecFinding]:
    """PyTorch's index of builds for the CPU, as an index or as a page of links."""
    found = re.search(r"//download\.pytorch\.org/whl/((?:nightly|test)/)?cpu(?=[/\s]|$)", option.text)
    if not found:
        return []
    replacement: str | None = ""
    remedy = "Remove the line."
    if option.file.endswith(".toml"):
        replacement, remedy = None, "Remove this index, and where a package names it as its source."
    elif found[1]:
        replacement, remedy = None, f"Write the one for the CUDA of the driver, as `…/whl/{found[1]}cu126`."
    return [_finding(option, "", "This index has PyTorch's builds for the CPU", remedy, replacement)]


_LOCAL = r"\+(?:pt\d+)?cpu\b"
_PYTORCH = ("torch", "torchvision", "torchaudio", "torchtext", "torchdata")
_TENSORFLOW = {"tensorflow-cpu": "tensorflow", "tf-nightly-cpu": "tf-nightly"}
_CONDA_NAMES = {
    "tensorflow-cpu": "tensorflow",
    "pytorch-cpu": "pytorch",
    "py-xgboost-cpu": "py-xgboost",
}


def _of_wheel(line: Requirement, package: RequiredPackage) -> list[SpecFinding]:
    wheel = parse_wheel_name(unquote(package.file_name))
    if wheel is None or not re.search(_LOCAL, wheel.version):
        return []
    wanted = f"{wheel.name}=={re.sub(_LOCAL, '', wheel.version)}"
    what = f"`{unquote(package.file_name)}` is a build for the CPU"
    if wheel.name not in _PYTORCH:
        return [_finding(line, wheel.name, what, "Name the wheel that was built for CUDA.", None)]
    return [_finding(line, wheel.name, what, f"Write `{wanted}`.", _whole(wanted, package))]


def _tensorflow(spec: EnvironmentSpec, package: RequiredPackage) -> str:
    """As for what is installed: before 2.0 there was a package of its own, since 2.14 CUDA is an extra."""
    name, minors = _TENSORFLOW[package.name], allowed_minors(spec)
    bound = re.search(r"(==|~=|<=?)\s*([\d.]+)", package.specifier)
    operator, newest = (bound[1], release(bound[2])) if bound else ("", _FIRST_WITH_EXTRA)
    if operator in ("==", "~=") and newest < (2,):
        return f"tensorflow-gpu{package.specifier}"
    is_before = newest < _FIRST_WITH_EXTRA or (operator == "<" and newest == _FIRST_WITH_EXTRA)
    has_extra = not is_before and (not minors or max(minors) >= _OLDEST_WITH_CUDA)
    extras = ",".join(each for each in (package.extras, "and-cuda" if has_extra else "") if each)
    return f"{name}{f'[{extras}]' if extras else ''}{package.specifier}"


def _whole(wanted: str, package: RequiredPackage) -> str | None:
    """Hashes belong to the build that they were made of: with them a person has to choose."""
    if package.hashes:
        return None
    return f"{wanted} ; {package.marker}" if package.marker else wanted


def _finding(line: Requirement, name: str, what: str, remedy: str, replacement: str | None) -> SpecFinding:
    sentence = f"{what}: the GPU would stay idle."
    place = (line.file, line.line, replacement, line.text)
    return SpecFinding("cpu-build", name, sentence, remedy, "error", *place)
