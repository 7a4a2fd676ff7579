"""Tests of the kit and of the bench prove nothing about Holdfast: they run where those have changed.

`tests/kit/proven` has the digest of both as it was when their tests passed last; `make test-kit` runs them and writes
it. Where it differs, `make test` runs them with the others.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTE = ROOT / "tests" / "kit" / "proven"
_FOLDERS = ("tests/kit", "tests/integration/suite", "bench")
_ENDINGS = (".py", ".c", ".txt")


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
    if session.config.getoption("kit") and exitstatus == 0 and not hasattr(session.config, "workerinput"):
        NOTE.write_text(f"{digest()}\n")


def is_proven() -> bool:
    return NOTE.exists() and NOTE.read_text().strip() == digest()


def digest() -> str:
    total = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _ENDINGS:
                total.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _is_of_kit(item: pytest.Item) -> bool:
    return item.get_closest_marker("kit") is not None
