"""Pipes, devices, sockets and files without an end where a project has its files: each is named, and none is waited
for."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import ExitCode
from holdfast.farside.environments import user_python
from holdfast.farside.machine import pythons
from holdfast.snapshots.editable import editable_warnings
from holdfast.snapshots.take import Selection, take_snapshot
from kit.commands import Result


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _terminal(place: Path) -> None:
    place.symlink_to("/dev/ptmx")


def _socket(place: Path) -> None:
    here = os.getcwd()
    os.chdir(place.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)
    finally:
        os.chdir(here)


def _endless(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 42)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": _pipe,
    "device": _device,
    "terminal": _terminal,
    "socket": _socket,
    "endless": _endless,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    files = {
        "aml_config/night.runconfig": "Target: box7\nFramework: Python\nCondaDependenciesFile: requirements.txt\n",
        "aml_config/box7.compute": "type: local\nuserManagedEnvironment: false\n",
        "aml_config/y.runconfig": "Target: box7\nFramework: Python\nCondaDependenciesFile: conda.yml\n",
        "aml_config/z.runconfig": "Target: box7\nFramework: Python\nCondaDependenciesFile: uv.lock\n",
        "aml_config/p.runconfig": "Target: box7\nFramework: Python\nCondaDependenciesFile: pyproject.toml\n",
        "requirements.txt": "-r more.txt\n-c limits.txt\n./own.whl\n",
        "more.txt": "six\n",
        "limits.txt": "six<2\n",
        "own.whl": "",
        "conda.yml": "dependencies:\n- python=3.11\n",
        "pyproject.toml": '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = []\n',
        "uv.lock": 'version = 1\nrequires-python = ">=3.10"\n\n[[package]]\nname = "p"\nversion = "1"\n'
        'source = { virtual = "." }\n',
        "train.py": "print(1)\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


NO_FILE, NOT_REGULAR, TOO_LARGE = "is not a file", "not a regular file", "is larger than 1 MB"
OUTSIDE = ExitCode.CONFIGURATION, r"requirements\.txt:\d: `(\./)?{file}` is outside the project"
"""Of a link: where it leads to is not read at all."""

Outcome = tuple[int, str]


def _alike(odd: Outcome, endless: Outcome) -> dict[str, Outcome]:
    """A link to a device is told as a pipe is."""
    return {"pipe": odd, "device": odd, "endless": endless}


def _configured(no_file: str, too_large: str, device: Outcome | None = None) -> dict[str, Outcome]:
    """Outcomes for a file of the configuration."""
    pipe, endless = (ExitCode.CONFIGURATION, no_file), (ExitCode.CONFIGURATION, too_large)
    return {"pipe": pipe, "device": device or pipe, "endless": endless}


def _named(file: str, device: Outcome | None = None) -> dict[str, Outcome]:
    """For one that is named with what is wrong with it."""
    return _configured(f"  {file}: {NO_FILE}", f"  {file}: {TOO_LARGE}", device)


IGNORED = r"`\.amlignore` cannot be read \(%s"
IDENTITY = r"project\.json` cannot be read: %s"
NO_PACKAGE = rf"own\.whl`, which the environment is made from, cannot be read: {NOT_REGULAR}"
OUTCOMES: list[tuple[str, str, dict[str, Outcome]]] = [
    (".amlignore", "y", _alike((0, IGNORED % NOT_REGULAR), (0, IGNORED % "larger than 16000000 bytes"))),
    (
        "aml_config/project.json",
        "y",
        _alike(
            (ExitCode.STORAGE, IDENTITY % NOT_REGULAR),
            (ExitCode.STORAGE, IDENTITY % "larger than 1048576 bytes"),
        ),
    ),
    (
        "aml_config/night.runconfig",
        "night",
        _alike(
            (ExitCode.USAGE, "no run configuration `night`"),
            (ExitCode.CONFIGURATION, rf"night\.runconfig: {TOO_LARGE}"),
        ),
    ),
    (
        "aml_config/box7.compute",
        "night",
        _configured(r"night\.runconfig:1: Target: .*`box7`", rf"box7\.compute: {TOO_LARGE}"),
    ),
    ("conda.yml", "y", _named(r"conda\.yml")),
    ("requirements.txt", "night", _named(r"requirements\.txt")),
    ("more.txt", "night", _named(r"more\.txt", OUTSIDE)),
    ("limits.txt", "night", _named(r"limits\.txt", OUTSIDE)),
    ("own.whl", "night", {"pipe": (ExitCode.PROJECT, NO_PACKAGE), "device": OUTSIDE}),  # a large package is one
    ("pyproject.toml", "p", _named(r"pyproject\.toml")),
    ("pyproject.toml", "z", _configured(r"no `pyproject\.toml` beside", rf"project\.toml: {TOO_LARGE}")),
    (".python-version", "p", _named(r"\.python-version")),
    ("uv.lock", "z", _configured(r"  uv\.lock: there is no such file", r"  uv\.lock: is too large to be a lock")),
    (
        "train.py",
        "y",
        _alike(
            (ExitCode.PROJECT, rf"`train\.py` is {NOT_REGULAR}"),
            (ExitCode.PROJECT, r"`train\.py` is left out of the snapshot"),
        ),
    ),
]


@pytest.mark.parametrize(
    ("file", "configuration", "kind", "outcome"),
    [
        (file, configuration, kind, outcome)
        for file, configuration, outcomes in OUTCOMES
        for kind, outcome in outcomes.items()
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_names_the_file_and_ends(
    holdfast: Callable[..., Result], project: Path, file: str, configuration: str, kind: str, outcome: Outcome
) -> None:
    (project / file).unlink(missing_ok=True)
    KINDS[kind](project / file)
    if file == ".amlignore" and kind == "endless":
        os.truncate(project / file, 1 << 25)  # it ships, so that it has to have an end
    elif kind == "endless":
        (project / ".amlignore").write_text(f"/{file}\n")
    found = holdfast("submit", "--dry-run", "-c", configuration, "train.py", cwd=project)
    code, told = outcome
    assert found.code == code, found.err
    assert re.search(told.replace("{file}", re.escape(file)), found.err), found.err
    if kind == "pipe":
        for words in (["environment", "check", "-c", configuration], ["history", "list"], ["computetarget", "list"]):
            assert "internal error" not in holdfast(*words, cwd=project).err


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_to_an_asset_is_read_only_where_it_is_a_file(
    holdfast: Callable[..., Result], project: Path, kind: str
) -> None:
    (project / "assets").mkdir()
    KINDS[kind](project / "assets" / "m.link")
    found = holdfast("asset", "download", "-l", "assets/m.link", "-d", "out", cwd=project, timeout=30.0)
    assert found.code == ExitCode.STORAGE, found.err
    assert "Could not read the link: " in found.err and "m.link" in found.err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", ["pyvenv.cfg", "bin/python3", "bin/python3.11"])
def test_a_python_that_a_target_names_is_looked_at(
    holdfast: Callable[..., Result], project: Path, file: str, kind: str
) -> None:
    (project / "venv" / "bin").mkdir(parents=True)
    (project / "venv" / "bin" / "python3").symlink_to("python3.11")
    (project / "venv" / "bin" / "python3.11").write_bytes(b"\x7fELF")
    (project / "venv" / file).unlink(missing_ok=True)
    KINDS[kind](project / "venv" / file)
    for each in (project / "venv" / "bin").iterdir():
        if not each.is_symlink():
            each.chmod(0o755)
    (project / ".amlignore").write_text("/venv/\n")
    (project / "aml_config/box7.compute").write_text("type: local\npythonLocation: venv/bin/python3\n")
    for words in (("environment", "check", "-c", "night"), ("submit", "--dry-run", "-c", "night", "train.py")):
        found = holdfast(*words, cwd=project)
        assert found.code != ExitCode.INTERNAL, found.err
        assert "Traceback" not in found.err
    python = str(project / "venv" / "bin" / "python3")
    user_python.beside(python)
    user_python.is_script(python)
    pythons.version_by_place(python)
    pythons._is_program(python)


@pytest.mark.parametrize("kind", ["pipe", "device", "terminal", "socket"])
@pytest.mark.parametrize(
    "file", [".gitignore", "sub/.gitignore", "data", "sub/.git", "sub/.git/info/exclude", "sub/pyvenv.cfg"]
)
def test_a_snapshot_is_taken_beside_it(project: Path, tmp_path: Path, file: str, kind: str) -> None:
    (project / file).parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](project / file)
    found = take_snapshot(project, tmp_path / "state", None, Selection({**os.environ, "PATH": ""}))
    assert found.files >= 10
    if file == "data" and kind in ("pipe", "socket"):
        assert "`data` is a socket, a pipe or a device" in found.warnings[0].message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "file",
    [
        "pyvenv.cfg",
        "lib/python3.11/site-packages/a-1.dist-info/direct_url.json",
        "lib/python3.11/site-packages/a.egg-link",
    ],
)
def test_an_environment_that_a_target_names_is_looked_at(tmp_path: Path, file: str, kind: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / file).unlink(missing_ok=True)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](tmp_path / file)
    assert editable_warnings(tmp_path / "bin" / "python", tmp_path) == []
