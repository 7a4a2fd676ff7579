"""What this machine lacks: tests that need it are skipped, and at the end a table says how many, and what to install.

Under CI=true a missing part is a failure, because `make test` installs them all there. Pythons are the exception: no
system package has all of them, so the table names the missing ones.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

_ROOT = "root"
_LIST = Path(__file__).resolve().parents[3] / "scripts" / "system-packages"
_MORE_FOLDERS = "/usr/sbin:/sbin"
PYTHONS = range(6, 14)


def require(*programs: str, root: bool = False) -> None:
    """Skip the test if a program is missing, or if it needs `root` and another user runs it."""
    path = f"{os.environ.get('PATH', '')}:{_MORE_FOLDERS}"
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    if root and os.getuid() != 0:
        missing.append(_ROOT)
    if missing:
        leave_out(*missing)


def leave_out(*parts: str) -> NoReturn:
    """Skip with these as the reason; fail under CI=true."""
    said = f"needs {', '.join(parts)}"
    if os.environ.get("CI") == "true":
        pytest.fail(said, pytrace=False)
    pytest.skip(said)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    reports = [report for kind in ("skipped", "failed", "error") for report in stats.get(kind, [])]
    rows = table([_reason(report) for report in reports])
    if rows:
        terminalreporter.section("left out on this machine")
        for row in rows:
            terminalreporter.write_line(row)


def table(reasons: Sequence[str]) -> list[str]:
    """For each set of missing parts: how many tests, and the line to type."""
    counts: dict[str, int] = defaultdict(int)
    for reason in reasons:
        found = re.match(r"(?:Skipped: )?needs (.+)", reason)
        if found:
            counts[found[1]] += 1
    rows = [f"{count:5} need {parts:34} {remedy(parts.split(', '))}" for parts, count in sorted(counts.items())]
    absent = absent_pythons()
    if absent:
        rows.append(f"Not tested with Python {', '.join(absent)}. Install them with pyenv.")
    return rows


def remedy(parts: Sequence[str]) -> str:
    packages = sorted({package for program, package in known_packages() if program in parts})
    words = [f"sudo apt-get install {' '.join(packages)}"] if packages else []
    if _ROOT in parts:
        words.append("sudo make test")
    return "; ".join(words) or "no package known"


def known_packages() -> list[tuple[str, str]]:
    """`program:package` lines of the script that installs them."""
    pairs = re.findall(r"^([\w./-]+):([\w.-]+)$", _LIST.read_text(), re.MULTILINE)
    return [(Path(program).name, package) for program, package in pairs]


def pytest_configure() -> None:
    absent_pythons()  # looked for once, while HOME is the user's


@functools.cache
def absent_pythons() -> list[str]:
    from integration.interpreters import FOUND

    return [f"3.{minor}" for minor in PYTHONS if f"python3.{minor}" not in FOUND]


def _reason(report: pytest.TestReport) -> str:
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr or "")
