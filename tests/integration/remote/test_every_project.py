"""One box, many repositories: a target of the account, and cleaning from a folder that is no project."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.boxes import Box

Run = Callable[..., Any]
WRITES = "import pathlib, sys\nprint(sys.prefix)\npathlib.Path('result.bin').write_bytes(b'x' * 2000)\n"


def repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "t.py").write_text(WRITES)
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, "add", "."], check=True)
    return folder


def state_of(folder: Path) -> str:
    done = subprocess.run(["git", "-C", folder, "status", "--short"], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def far_python(gpu1: Box) -> str:
    """A prepared environment on the box."""
    place = gpu1.account.home / "venvs" / "torch"
    gpu1.account.run(["python3", "-m", "venv", "--without-pip", str(place)])
    return str(place / "bin" / "python")


@pytest.fixture
def gpu1(box: Callable[..., Box]) -> Box:
    return box("gpu1")


def test_a_target_of_the_account_runs_code_of_two_repositories_and_is_cleaned_from_anywhere(
    tmp_path: Path, holdfast: Run, gpu1: Box, far_python: str
) -> None:
    def typed(*words: str, cwd: Path = tmp_path) -> Any:
        return holdfast(*words, env=gpu1.environment, cwd=cwd)

    wrong = typed("computetarget", "attach", "remote", "--user", "-n", "gpu1", "-a", "gpu1", "--python", "/no/python")
    assert wrong.code == 245 and "`/no/python`" in wrong.err, wrong.err
    attached = typed("computetarget", "attach", "remote", "--user", "-n", "gpu1", "-a", "gpu1", "--python", far_python)
    assert attached.code == 0, attached.err
    assert f"`{far_python}` on gpu1 is Python 3." in attached.err
    assert os.listdir(tmp_path) == []
    first, second = repository(tmp_path / "first"), repository(tmp_path / "second")
    for each in (first, second):
        before = state_of(each)
        ran = typed("submit", "-c", "gpu1", "t.py", cwd=each)
        assert (ran.code, ran.out) == (0, f"{Path(far_python).parent.parent}\n"), ran.err
        assert (state_of(each), sorted(os.listdir(each))) == (before, [".git", ".holdfast", "t.py"])
    left = typed("submit", "-c", "gpu1", "--outputs-limit", "1kB", "t.py", cwd=second)
    assert left.code == 0, left.err

    refused = typed("experiment", "clean", "--all", "-t", "gpu1")
    assert (refused.code, runs_on(gpu1)) == (240, 3), "nobody has agreed"
    (first / ".holdfast").rename(tmp_path / "put-aside")
    cleaned = typed("experiment", "clean", "--all", "-t", "gpu1", "--yes")
    assert cleaned.code == 0, cleaned.err
    lines = {line.partition(" ")[0]: line for line in cleaned.err.splitlines() if line.startswith(("removed", "kept"))}
    assert runs_on(gpu1) == 2, "the record of one is not here, and of another not the file"
    assert f"{second.name}_" in lines["removed"]
    assert "this machine has no record of it" in cleaned.err and "result.bin (2.0 kB)" in cleaned.err
    by_address = typed("experiment", "clean", "--address", "gpu1", "--all", "--discard-outputs", "--yes")
    assert (by_address.code, runs_on(gpu1)) == (0, 0), by_address.err
    assert json.loads(typed("environment", "list", "--address", "gpu1").out) == []


def runs_on(box: Box) -> int:
    return len(list(box.home.glob("runs/*/*_*")))
