"""Choosing packages here for a machine that reaches no index: uv resolves for its platform and its Python, and says
where the files are."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from holdfast.codec import decode
from holdfast.environments.environment_plan import FORMAT, Lock
from holdfast.environments.uv_folder import uv_folder
from holdfast.errors import NotAvailable, PreparationError
from holdfast.farside.environments import drivers, torch_builds
from holdfast.farside.environments.installer_errors import NETWORK, explain
from holdfast.farside.environments.locks import package_lines, torch_backend, without_notes
from holdfast.farside.environments.pins import differences, narrowed, pins, summary_of
from holdfast.farside.environments.settings import translated
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import dataclass, field, replace
from holdfast.plan import EnvironmentPlan
from holdfast.project.pyproject import parse_toml
from holdfast.project.requirement_lines import RequiredPackage, parse_package

_WANTED, _LIMITS, _LOCK, _FILES = "requirements.in", "constraints.in", "requirements.txt", "pylock.toml"
_NO_WHEEL = ("no usable wheels", "no wheels with a matching", "building source distributions", "download and build")


@dataclass(frozen=True)
class ForeignMachine:
    """What packages are chosen for: `platform` as the far side names it, `python` a full version, `driver` that of
    NVIDIA's GPUs, if there is one; `is_without_gpu`: it surely has none."""

    platform: str
    python: str
    driver: str = ""
    is_without_gpu: bool = False

    def __str__(self) -> str:
        return f"{self.platform} with Python {self.python}"


@dataclass(frozen=True)
class Installer:
    """uv on this machine: its `program`, its `variables`, the `secrets` that the spec's addresses need beside them, the
    `project` that local wheels are in, and `home`, Holdfast's folder."""

    program: str
    variables: Mapping[str, str]
    secrets: Mapping[str, str]
    project: Path
    home: Path

    def __repr__(self) -> str:
        return f"Installer({self.program})"


def resolve_for(machine: ForeignMachine, plan: EnvironmentPlan, uv: Installer) -> Lock:
    """The lock of what `plan` asks for. Versions that its spec has on other machines are kept where they fit; with
    `exact`, PreparationError is raised where the first lock's cannot be had."""
    backend = ""
    if plan.locked:
        text = "\n".join(line for line in plan.locked.splitlines() if not line.startswith("-"))
    elif plan.requirements:
        _refuse_builds(plan)
        text = _compiled(machine, plan, uv, [])
        if machine.driver and drivers.torch_is_too_new(
            package_lines(text), drivers.EnvironmentMachine(driver=machine.driver)
        ):
            fitting = replace(uv, variables={**uv.variables, "UV_CUDA_DRIVER_VERSION": machine.driver})
            backend = "auto"
            text = _compiled(machine, plan, fitting, ["--torch-backend", backend])
        elif _may_be_for_the_cpu(text, machine, plan, uv):
            with contextlib.suppress(PreparationError):  # then the usual build is there, and is said to be
                quickly = replace(uv, variables={**uv.variables, **torch_builds.QUICKLY})
                text = _compiled(machine, plan, quickly, ["--torch-backend", torch_builds.CPU])
                backend = torch_builds.CPU
    else:
        text = ""
    lock = {"format": FORMAT, "spec": plan.spec, "platform": machine.platform, "python": machine.python}
    made = lock | {"requirements": text, "conda": [], "backend": backend}
    return _exactly(made, dict(plan.locks[0])) if plan.exact else made


def _may_be_for_the_cpu(text: str, machine: ForeignMachine, plan: EnvironmentPlan, uv: Installer) -> bool:
    wanted = [text for text, _ in (*plan.requirements, *plan.constraints)]
    is_chosen = torch_builds.is_chosen(plan.options, wanted, dict(uv.variables))
    return not is_chosen and not plan.exact and brings_needless_cuda(text, machine)


def brings_needless_cuda(requirements: str, machine: ForeignMachine) -> bool:
    """Whether a build of PyTorch for CUDA is among them that the machine has no use for."""
    found = drivers.EnvironmentMachine(is_without_gpu=machine.is_without_gpu)
    return torch_builds.is_needless(torch_builds.build_among(package_lines(requirements)), found)


def _exactly(made: dict[str, Any], wanted: dict[str, Any]) -> Lock:
    """The environment of another run as this machine's indexes have it."""
    if changes := differences(made, wanted):
        raise PreparationError(
            f"The indexes of this machine do not have exactly the environment of the other run: {summary_of(changes)}.",
            "Leave out --environment-of to choose packages anew, or --ship-packages where the machine reaches an "
            "index.",
        )
    return narrowed(made, wanted)


def wheel_files(lock: Lock, machine: ForeignMachine, plan: EnvironmentPlan, uv: Installer) -> tuple[WheelFile, ...]:
    """Asks the indexes where the packages of a lock are, except those that lie in the project."""
    text = without_notes(str(lock["requirements"]))
    if not text.strip():
        return ()
    unfit = re.search(r"^(?P<name>\S+) @ git\+", text, re.MULTILINE)
    if unfit:
        raise PreparationError(
            f"The package `{unfit['name']}` comes out of a repository of Git's, and only wheels can be sent.",
            "Build a wheel of it (uv build --wheel), put it into the project and name its path.",
        )
    with uv_folder(uv.home) as folder:
        _write(folder / _LOCK, [*plan.options, text])
        words = [*torch_backend(dict(lock)), "--no-deps", "--format", "pylock.toml", "--output-file", _FILES]
        _run(uv, folder, [_LOCK, *words, *_arguments(machine, plan)], plan, machine)
        return read_wheel_files((folder / _FILES).read_text(encoding="utf-8"), text, folder, uv.project)


def _refuse_builds(plan: EnvironmentPlan) -> None:
    """Nothing of a project's files runs on this machine."""
    for line, where in plan.requirements:
        package = parse_package(line)
        if isinstance(package, RequiredPackage) and package.location.startswith("${") and not package.is_archive:
            raise PreparationError(
                f"{where}: only the project's build says what it depends on, and builds never run on this machine.",
                "List the packages in a requirements file and name it with -d, or leave out --ship-packages.",
            )


def _compiled(machine: ForeignMachine, plan: EnvironmentPlan, uv: Installer, more: Sequence[str]) -> str:
    with uv_folder(uv.home) as folder:
        _write(folder / _WANTED, [*plan.options, *(text for text, _ in plan.requirements)])
        words = [_WANTED, *more, "--generate-hashes", "--no-header", "--output-file", _LOCK]
        if plan.constraints:
            _write(folder / _LIMITS, [text for text, _ in plan.constraints])
            words += ["--constraint", _LIMITS]
        if plan.locks and not plan.upgrade:
            known = torch_builds.public_versions(pins(str(plan.locks[0]["requirements"])))
            _write(folder / _LOCK, [f"{name}=={version}" for name, version in sorted(known.items())])
        _run(uv, folder, [*words, *_arguments(machine, plan)], plan, machine)
        return (folder / _LOCK).read_text(encoding="utf-8")


def _arguments(machine: ForeignMachine, plan: EnvironmentPlan) -> list[str]:
    target = ["--python-platform", uv_platform(machine.platform), "--python-version", machine.python]
    own = ["--python", sys.executable, "--no-python-downloads", "--quiet"]
    several = any(each.startswith("--extra-index-url") for each in plan.options)
    strategy = ["--index-strategy", "unsafe-best-match"] if several else []
    return [*target, "--only-binary", ":all:", *own, *strategy, *plan.arguments]


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _run(uv: Installer, folder: Path, words: Sequence[str], plan: EnvironmentPlan, machine: ForeignMachine) -> None:
    own = {"HOLDFAST_FILES": os.fspath(uv.project), "UV_NO_PROJECT": "1", "NO_COLOR": "1"}
    command, variables = [uv.program, "pip", "compile", *words], {**uv.variables, **own, **uv.secrets}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        output = done.stderr
        for value in filter(None, uv.secrets.values()):
            output = output.replace(value, "***")
        raise _failure(output, plan, machine)


def _failure(output: str, plan: EnvironmentPlan, machine: ForeignMachine) -> PreparationError:
    found, low = explain(output, [list(each) for each in plan.requirements]), output.lower()
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


_HASH = re.compile(r"--hash[= ]sha256:([0-9a-f]{64})")
_WHEEL = r"[^-]+-[^-]+(?:-(?P<build>\d[^-]*))?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"


@dataclass(frozen=True)
class WheelFile:
    """`name` is the file's; `url` may lead to a file of this machine. `size` None: the index does not say it."""

    package: str
    name: str
    url: str
    sha256: str
    size: int | None = None


@dataclass(frozen=True)
class _ListedFile:
    url: str | None = None
    path: str = ""
    name: str = ""
    hashes: Mapping[str, str] = field(default_factory=dict)
    size: int | None = None


@dataclass(frozen=True)
class _Package:
    name: str
    version: str = ""
    wheels: tuple[_ListedFile, ...] = ()
    archive: _ListedFile | None = None


@dataclass(frozen=True)
class _Pylock:
    packages: tuple[_Package, ...] = ()


def read_wheel_files(pylock: str, requirements: str, folder: Path, project: Path) -> tuple[WheelFile, ...]:
    """One for each package of the lock `requirements`, without those that lie in the project: they travel with it.

    `pylock` was written into `folder`. Raises PreparationError for a package that is no wheel, or not the
    lock's.
    """
    hashes = set(_HASH.findall(requirements))
    try:
        packages = decode(_Pylock, parse_toml(pylock)).packages
    except (ValueError, RecursionError) as error:  # also of TOML and of the codec
        raise PreparationError(
            f"uv lists packages in a way that is not understood: {error}.", "Update it: pip install --upgrade uv"
        ) from error
    found = (_file_of(package, folder, hashes) for package in packages)
    local = _of_project(requirements, project)
    return tuple(each for each in found if each.url not in local)


def _of_project(requirements: str, project: Path) -> set[str]:
    """The wheels that the lock names by their path in the project."""
    inside = Path(real_path(project)).as_uri() + "/"
    named = re.findall(r"^(?:\S+ @ )?\$\{HOLDFAST_FILES\}/(\S+)", requirements, re.MULTILINE)
    return {urljoin(inside, quote(each.partition("[")[0])) for each in named}


def _file_of(package: _Package, folder: Path, hashes: Collection[str]) -> WheelFile:
    name = f"{package.name} {package.version}".strip()
    candidates = [each for each in _candidates(package, folder) if each.name.endswith(".whl")]
    if not candidates:
        raise PreparationError(
            f"The package `{name}` is no wheel, and only wheels can be sent.",
            f"Build one (uv build --wheel, or pip wheel {package.name}), put it into the project and name its "
            "path in the environment's file.",
        )
    known = [each for each in candidates if each.sha256 in hashes]
    if not known:
        raise PreparationError(
            f"The index has other files of `{name}` than the lock names.", "To choose packages anew: --upgrade"
        )
    return max(known, key=lambda each: _rank(each.name))


def _candidates(package: _Package, folder: Path) -> Iterator[WheelFile]:
    rows = (*package.wheels, *((package.archive,) if package.archive is not None else ()))
    for row in rows:
        try:
            url = row.url if row.url is not None else Path(real_path(folder / row.path)).as_uri()
            name = row.name or unquote(urlsplit(url).path.rpartition("/")[2])
        except ValueError:  # no address, or no path
            continue
        yield WheelFile(package.name, name, url, row.hashes.get("sha256", ""), row.size)


def _rank(name: str) -> tuple[Any, ...]:
    """As installers choose: compiled for this Python before compiled for several, both before pure Python; the newest
    system, the highest build number."""
    parts = re.fullmatch(_WHEEL, name)
    if parts is None:
        return ()
    abi, platform = parts["abi"], parts["platform"]
    versions = [int(each) for each in re.findall(r"(?:py|cp)\d(\d*)", parts["python"]) if each]
    systems = [(int(major), int(minor)) for major, minor in re.findall(r"linux_(\d+)_(\d+)_", platform)]
    build = re.match(r"\d+", parts["build"] or "")
    return (
        platform != "any",
        abi not in ("none", "abi3"),
        abi == "abi3",
        max(versions, default=0),
        max(systems, default=(0, 0)),
        int(build[0]) if build else 0,
    )


def index_variables(environment: Mapping[str, str], user_home: Path) -> dict[str, str]:
    """What has to be set beside `environment` so that uv goes by pip's settings too. May hold passwords: it goes into
    uv's environment and nowhere else."""
    known = dict(environment)
    known.setdefault("HOME", os.fspath(user_home))
    own = None  # where pip keeps its settings on systems other than Linux
    if sys.platform == "win32":
        own = Path(environment.get("APPDATA") or user_home / "AppData" / "Roaming") / "pip" / "pip.ini"
    elif sys.platform == "darwin":
        own = user_home / "Library" / "Application Support" / "pip" / "pip.conf"
    if not environment.get("PIP_CONFIG_FILE") and own is not None and own.is_file():
        known["PIP_CONFIG_FILE"] = os.fspath(own)
    return translated(known)


_GLIBC = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
"""The minor versions that uv has a name for; there are next to no packages for those between."""


def uv_platform(name: str) -> str:
    """`x86_64-manylinux_2_36` for `linux-x86_64-glibc2.36`: the newest that runs there."""
    found = re.fullmatch(r"linux-(?P<architecture>x86_64|aarch64)-(?:musl|glibc2\.(?P<minor>\d+))", name)
    if found and found["minor"] is None:
        return f"{found['architecture']}-unknown-linux-musl"
    fitting = [minor for minor in _GLIBC if found and minor <= int(found["minor"])]
    if found and fitting:
        return f"{found['architecture']}-manylinux_2_{fitting[-1]}"
    raise NotAvailable(
        f"Packages cannot be chosen here for a machine that is `{name}`.",
        "Leave out --ship-packages where the machine reaches an index, or use its own Python: "
        "`userManagedEnvironment: true` in its .compute file.",
    )
