"""A second try is for tests of real processes only, and never silent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
UNLUCKY = """
import pathlib, pytest

@pytest.mark.parametrize("number", range({count}))
def test_unlucky(number):
    marker = pathlib.Path(__file__).with_name(f"{{number}}.tried")
    tries = len(marker.read_text()) if marker.exists() else 0
    marker.write_text("x" * (tries + 1))
    assert tries >= {failures}, "lost the race"
"""


@pytest.fixture
def tried(tmp_path: Path):
    """Runs so many tests, each of which fails so often, in a folder of that name; the code and what was printed."""

    def run(folder: str, count: int, failures: int, *options: str) -> tuple[int, str]:
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        there = tmp_path / folder
        there.mkdir(parents=True)
        (there / "test_it.py").write_text(UNLUCKY.format(count=count, failures=failures))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "kit.second_try", f"--basetemp={tmp_path / 'of-its-own'}", *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=180,
        )
        return done.returncode, done.stdout

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_what_passes_the_second_time_passes_and_its_failure_is_printed(tried, workers):
    code, said = tried("integration", 3, 1, "--second-try", *workers)
    assert code == 0
    assert "3 passed, 3 rerun" in said
    assert "lost the race" in said


def test_what_fails_twice_fails(tried):
    code, said = tried("integration", 1, 2, "--second-try")
    assert (code, "1 failed" in said) == (1, True)


def test_there_are_few_of_them(tried):
    code, said = tried("integration", 5, 1, "--second-try", "-n", "2")
    assert code == 1
    assert "2 failed, 3 passed, 3 rerun" in said


@pytest.mark.parametrize(
    ("folder", "options"),
    [("unit", ("--second-try",)), ("integration/faults", ("--second-try",)), ("integration", ())],
)
def test_other_tests_have_one_try_and_nobody_has_two_unasked(tried, folder, options):
    code, said = tried(folder, 1, 1, *options)
    assert (code, "1 failed" in said) == (1, True)
