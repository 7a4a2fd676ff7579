"""`pytest --second-try`: a test of `tests/integration` that failed is run once more, and said to have failed.

More than a thousand tests start, cut and stop processes on a machine whose speed nobody promises. One of them may lose
a race that no user would see, once in thousands; that alone shall not hold up a change. What only passes the second
time is printed with its first failure, to be mended. There are few second tries, and none where rare failures are
what is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

FEW = 3
ONE_TRY = "faults"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--second-try",
        action="store_true",
        help=f"Run a test below integration, but not of {ONE_TRY}, that failed once more, for {FEW} tests at most.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("second_try"):
        config.option.max_suite_reruns = FEW
        config.option.rerun_show_tracebacks = True


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    if not config.getoption("second_try"):
        return
    for item in items:
        if "integration" in item.path.parts and ONE_TRY not in item.path.parts:
            item.add_marker(pytest.mark.flaky(reruns=1))
