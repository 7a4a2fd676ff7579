"""`pytest --second-try`: a test of real processes that failed is run once more, and said to have failed.

Some two thousand tests start, cut and kill processes on a machine whose speed nobody promises. One of them may lose a
race that no user would see, once in thousands; that alone shall not hold up a change. What only passes the second time
is printed with its first failure, to be mended, and more than a few of them are a failure.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

FEW = 3
FOLDER = "integration"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--second-try",
        action="store_true",
        help=f"Run a test below {FOLDER} that failed once more; more than {FEW} of them are a failure all the same.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    if not config.getoption("second_try"):
        return
    for item in items:
        if FOLDER in item.path.relative_to(config.rootpath).parts:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if len(_failed_once(session.config)) > FEW:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    failed = _failed_once(config)
    if not failed:
        return
    terminalreporter.section("FAILED THE FIRST TIME", yellow=True)
    for each in failed:
        terminalreporter.write_sep("_", each.nodeid)
        terminalreporter.write_line(each.longreprtext)
    if len(failed) > FEW:
        terminalreporter.write_line(f"{len(failed)} tests needed a second try, more than {FEW}: that is a failure.")


def _failed_once(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("rerun", []) if reporter is not None else []
