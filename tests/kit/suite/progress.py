"""What a person sees while the suite runs: the part, the progress, slow tests. One line now and then, no dots.

On a terminal the line is rewritten; in a log there is one every fifteen seconds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import pytest
from _pytest.terminal import TerminalReporter

_A_WHILE = 15.0
_SLOW = 10.0
_AT_ONCE = 0.2
_FEW = 100
"""Number of tests; for fewer, pytest's own dots are enough."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput") and config.get_verbosity() == 0:
        progress = Progress(config, sys.stdout)
        config.pluginmanager.unregister(reporter)
        config.pluginmanager.register(progress, "terminalreporter")


class Progress(TerminalReporter):  # type: ignore[misc] # final, but for what is drawn it has no other seam
    """pytest's reporter without its dots."""

    def __init__(self, config: pytest.Config, file: object) -> None:
        super().__init__(config, file)  # type: ignore[arg-type]
        self._began = self._said = time.monotonic()
        self._total = Counter[str]()
        self._done = Counter[str]()
        self._running: dict[str, float] = {}
        self._failures = 0
        self._has_line = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        super().pytest_collection_finish(session)
        self._count([item.nodeid for item in session.items])

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._count(ids)

    def _count(self, ids: list[str]) -> None:
        self._total = Counter(map(_part, ids))
        self._show_progress_info = False if self._is_long else self._show_progress_info

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        if not self._is_long:
            super().pytest_runtest_logstart(nodeid, location)
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self._is_long:
            super().pytest_runtest_logreport(report)
            return
        category, _, _ = self.config.hook.pytest_report_teststatus(report=report, config=self.config)
        self._add_stats(category, [report])
        if report.failed:
            self._failures += 1
            self._write(f"FAILED {report.nodeid} ({report.when})", keep=True)
        if report.when not in ("setup", "call"):  # also of a worker that crashed
            self._done[_part(report.nodeid)] += 1
            self._running.pop(report.nodeid, None)
        self._tell()

    def summary_stats(self) -> None:
        self._tell(at_end=True)
        super().summary_stats()

    @property
    def _is_long(self) -> bool:
        return sum(self._total.values()) >= _FEW

    def _tell(self, at_end: bool = False) -> None:
        now = time.monotonic()
        if not self._is_long or (not at_end and now - self._said < (_AT_ONCE if self.isatty else _A_WHILE)):
            return
        self._said = now
        self._write(self._line(now), keep=at_end or not self.isatty)

    def _line(self, now: float) -> str:
        """`3:20  2,911 of 6,100  integration/docker 41 of 167, unit/cli 12 of 216  1 failed  slow: test_x (34 s)`"""
        done, total = sum(self._done.values()), sum(self._total.values())
        parts = sorted({_part(nodeid) for nodeid in self._running})
        under_way = ", ".join(f"{part} {self._done[part]} of {self._total[part]}" for part in parts)
        words = [_clock(now - self._began), f"{done:,} of {total:,}", under_way]
        if self._failures:
            words.append(f"{self._failures} failed")
        longest = min(self._running.items(), key=lambda each: each[1], default=("", now))
        if now - longest[1] > _SLOW:
            words.append(f"slow: {longest[0].rpartition('::')[2]} ({now - longest[1]:.0f} s)")
        return "  ".join(word for word in words if word)

    def _write(self, text: str, keep: bool) -> None:
        width = self._tw.fullwidth
        if self._has_line:
            self._tw.write("\r" + " " * (width - 1) + "\r")
        self._has_line = not keep
        self._tw.write(text if keep else text[: width - 1])
        if keep:
            self._tw.line()
        self._tw.flush()


def _part(nodeid: str) -> str:
    """The folder below `tests/`: `integration/docker`, `unit/cli`, `contract`."""
    folders = nodeid.partition("::")[0].split("/")[1:-1]
    return "/".join(folders[:2]) or "tests"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
