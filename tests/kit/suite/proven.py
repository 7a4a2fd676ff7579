"""Tests of the kit and of the bench prove nothing about Holdfast, so they run only if those have changed.

`tests/kit/proven` has the digest of both from when their tests last passed; `make test-kit` runs them and writes it. If
it differs, `make test` runs them with the others.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTE = ROOT / "tests" / "kit" / "proven"
_PLACES = (
    "tests/kit",
    "tests/conftest.py",
    "tests/integration/suite",
    "tests/integration/docker/test_kit.py",
    "tests/integration/remote/test_kit.py",
    "tests/integration/remote/test_link.py",
    "tests/integration/machine/test_nvml_kit.py",
    "tests/unit/kit",
    "tests/unit/bench",
    "bench",
    "scripts/system-packages",
)
_ENDINGS = (".py", ".c", ".txt", "")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kit", action="store_true", help="Run the tests of the kit and the bench, and note that they pass."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("kit"):
        left_out = [item for item in items if not _is_of_kit(item)]
    elif config.args_source is not pytest.Config.ArgsSource.ARGS and is_proven():
        left_out = [item for item in items if _is_of_kit(item)]
    else:
        return
    config.hook.pytest_deselected(items=left_out)
    chosen = set(items) - set(left_out)
    items[:] = [item for item in items if item in chosen]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    if not config.getoption("kit") or exitstatus != 0 or hasattr(config, "workerinput"):
        return
    reporter = config.pluginmanager.getplugin("terminalreporter")
    is_whole = config.args_source is not pytest.Config.ArgsSource.ARGS and not config.getoption("keyword")
    if is_whole and reporter is not None and not reporter.stats.get("skipped"):
        NOTE.write_text(f"{digest()}\n")


def is_proven() -> bool:
    return NOTE.exists() and NOTE.read_text().strip() == digest()


def digest() -> str:
    total = hashlib.sha256()
    for place in map(ROOT.joinpath, _PLACES):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in _ENDINGS and path.is_file() and path != NOTE:
                total.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _is_of_kit(item: pytest.Item) -> bool:
    return item.get_closest_marker("kit") is not None
