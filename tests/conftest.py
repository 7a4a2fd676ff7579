"""Every test has its own home, environment and terminal width; `holdfast` runs the command line."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import pytest

from kit.commands import Result, command_server, must_start, search_path

FOREIGN = ("HOLDFAST_", "AZUREML_", "GIT_", "XDG_", "_HOLDFAST_")
FOREIGN_NAMES = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "FORCE_COLOR",
    "LS_COLORS",
)
PLUGINS = ("containment", "time_limit", "moments", "missing_parts", "proven", "progress")
pytest_plugins = [f"kit.suite.{name}" for name in PLUGINS]
KEPT = ("GIT_SSL_CAINFO",)
_HAS_FAILED = pytest.StashKey[bool]()
_HOMES = itertools.count()
"""Numbered here: `mktemp` looks through all folders for the next number and renews a link, for every test."""


def pytest_configure() -> None:
    """Tests of signals must also work in the background, where a shell or `nohup` blocks interrupt and hang-up."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    gc.disable()  # nothing that is collected here becomes garbage: each worker spends a third less on it


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("waits") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[_HAS_FAILED] = item.stash.get(_HAS_FAILED, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def isolated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An empty home and an environment without traces of the machine. Returns the home. The home of a failed test is
    kept for inspection."""
    for name in list(os.environ):
        if (name.startswith(FOREIGN) and name not in KEPT) or name in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / f"home{next(_HOMES)}"
    home.mkdir()
    settings = {
        "HOME": home,
        "PATH": search_path(),
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
        "HOLDFAST_NVML": os.path.join(home, "no-nvml"),  # never asks the GPUs of the machine that runs the tests
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    yield home
    if not request.node.stash.get(_HAS_FAILED, False):
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def holdfast(tmp_path: Path) -> Callable[..., Result]:
    """`holdfast("history", "list", cwd=…)` runs the command line in its own process."""

    def run(
        *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 100
    ) -> Result:
        place, environment = cwd or tmp_path, {**os.environ, **(env or {})}
        if not must_start(env or {}):
            return command_server().run(arguments, place, environment, timeout)
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=place,
            env=environment,
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
    """`needs("git", "sshd", root=True)` skips if a program or a right is missing, and fails under CI=true."""

    from kit.suite.missing_parts import require  # a plugin: pytest imports it first, to rewrite its assertions

    return require
