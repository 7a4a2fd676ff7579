"""Every test has a home, an environment and a terminal width of its own; `holdfast` runs the command line."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

FOREIGN = ("HOLDFAST_", "AZUREML_", "GIT_", "XDG_", "_HOLDFAST_")
FOREIGN_NAMES = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "FORCE_COLOR",
    "LS_COLORS",
)
pytest_plugins = ["kit.second_try"]
KEPT = ("GIT_SSL_CAINFO",)
_HOMES = itertools.count()
"""Numbered here: `mktemp` looks through all folders for the next number and renews a link, for every test."""


def pytest_configure() -> None:
    """Started in the background, by a shell or `nohup` that let no interrupt or hang-up through, tests of these must
    work all the same."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@dataclass(frozen=True)
class Result:
    """How one command line ended."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that is empty and an environment that says nothing about the machine. Returns the home."""
    for name in list(os.environ):
        if (name.startswith(FOREIGN) and name not in KEPT) or name in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / f"home{next(_HOMES)}"
    home.mkdir()
    settings = {
        "HOME": home,
        "HOLDFAST_HOME": home / ".holdfast",
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_DATA_HOME": home / ".local" / "share",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "LINES": "40",
        "TERM": "xterm",
        "HOLDFAST_NVML": os.path.join(home, "no-nvml"),  # the GPUs of whoever runs the tests are not asked
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    yield home
    for name in ("objects", "tools"):  # uv is in both, 36 MB each, of a few hundred tests
        shutil.rmtree(home / ".holdfast" / name, ignore_errors=True)


@pytest.fixture
def holdfast(tmp_path: Path) -> Callable[..., Result]:
    """`holdfast("history", "list", cwd=…)` runs the command line in a process of its own."""

    def run(
        *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 180
    ) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=cwd or tmp_path,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def needs() -> Callable[..., None]:
    """`needs("git", "sshd", root=True)` skips where a program or a right is missing, and fails under CI=true."""

    def check(*programs: str, root: bool = False) -> None:
        missing = missing_programs(programs, os.environ.get("PATH", ""))
        missing += ["root, to be several users"] if root and os.getuid() != 0 else []
        if missing:
            say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
            say(f"needs {', '.join(missing)}")

    return check


def missing_programs(programs: Sequence[str], path: str) -> list[str]:
    import shutil

    return [program for program in programs if shutil.which(program, path=path) is None]
