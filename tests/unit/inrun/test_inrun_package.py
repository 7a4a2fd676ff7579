"""The file is also the root of the client: it must be quick to import and must not hide the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import holdfast

from .conftest import SOURCE, InRun


def python(script: str, path: list[Path], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run([sys.executable, "-S", "-c", script], env=environment, capture_output=True, text=True)


def test_importing_it_loads_next_to_nothing():
    script = "import os, sys; before = set(sys.modules); import holdfast; print(sorted(set(sys.modules) - before))"
    done = python(script, [SOURCE])
    assert done.stdout == "['errno', 'holdfast']\n"


def test_the_build_can_read_the_version_from_the_text_and_everything_it_exports_exists():
    text = (SOURCE / "holdfast" / "__init__.py").read_text()
    assert re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE) == [holdfast.__version__]
    assert all(hasattr(holdfast, name) for name in holdfast.__all__)


def shipped(run: InRun) -> Path:
    """A far side as on a host: the in-run API without the client."""
    far = run.directory / "far"
    (far / "holdfast").mkdir(parents=True)
    shutil.copy(SOURCE / "holdfast" / "__init__.py", far / "holdfast")
    return far


def test_in_a_run_the_shipped_copy_does_not_hide_an_installed_client(run):
    far = shipped(run)
    script = "import holdfast, holdfast.model; print(holdfast.__file__); print(holdfast.model.__file__)"
    done = python(script, [far, SOURCE], HOLDFAST_RUN_ID="digits_1")
    assert done.stdout.splitlines() == [
        str(far / "holdfast" / "__init__.py"),
        str(SOURCE / "holdfast" / "model.py"),
    ], done.stderr


def test_a_path_with_odd_entries_is_no_reason_to_fail(run):
    odd = "import sys, pathlib; sys.path += [pathlib.Path('/x'), b'/y', None, '']"
    script = odd + "; import holdfast; print('fine')"
    done = python(script, [shipped(run)], HOLDFAST_RUN_ID="digits_1")
    assert done.stdout == "fine\n", done.stderr
