"""What is shipped to hosts compiles on every Python of this machine, and a script can use it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from integration.interpreters import FOUND, OLDEST
from kit.metric_points import metric_points

PACKAGE = Path(__file__).parents[2] / "src" / "holdfast"

SCRIPT = """\
import multiprocessing
import os
import sys

import holdfast
from azureml.logging import get_azureml_logger


def work(number):
    holdfast.log("worker", number, step=number)


def fork_one():
    child = os.fork()
    if child == 0:
        holdfast.log("forked", 1.5, step=1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def main():
    assert holdfast.current_run().id == "every_1"
    for step in range(100):
        holdfast.log("loss", 1.0 / (step + 1), step=step)
    holdfast.log({"list": [1, 2.5, float("nan")], "text": "na\\u00efve"}, step=3)
    fork_one()
    for method in ("fork", "spawn"):
        pool = multiprocessing.get_context(method).Pool(2)
        pool.map(work, range(4))
        pool.close()
        pool.join()
    holdfast.upload("folder/summary.txt", "done")
    get_azureml_logger().log("Accuracy", 0.9).wait()


if __name__ == "__main__":
    main()
"""


every_python = pytest.mark.parametrize("python", FOUND.values(), ids=FOUND.keys())


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """The far side as on a host."""
    far = tmp_path / "far"
    shutil.copytree(PACKAGE / "farside", far / "holdfast" / "farside", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE / "__init__.py", far / "holdfast")
    return far


def test_there_is_at_least_one_python_to_try() -> None:
    assert FOUND, "no python3.6 or newer was found on PATH or in ~/.pyenv/versions"


@every_python
def test_everything_that_is_shipped_compiles(python: Path, far: Path) -> None:
    done = subprocess.run([python, "-W", "error", "-m", "compileall", "-q", far], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sources = list(far.rglob("*.py"))
    assert len(list(far.rglob("*.pyc"))) == len(sources) >= 4


@every_python
def test_a_script_logs_forks_and_uploads(python: Path, far: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    run = tmp_path / "run"
    run.mkdir()
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(far), str(far / "holdfast" / "farside" / "shim")]),
        "HOLDFAST_RUN_ID": "every_1",
        "HOLDFAST_RUN_DIRECTORY": str(run),
    }
    argv = [str(python), "-W", "error", str(script)]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    metrics = metric_points(run / "metrics")
    assert [step for *_, step in metrics["loss"]] == list(range(100))
    assert str(metrics["list"][0][2]) == "[1, 2.5, nan]"
    assert metrics["text"][0][2] == "na\u00efve"
    assert sorted(str(value) for _, _, value, _ in metrics["worker"]) == sorted("01230123")
    assert [value for _, _, value, _ in (*metrics["forked"], *metrics["Accuracy"])] == [1.5, 0.9]
    assert len(list((run / "metrics").iterdir())) >= 4
    assert (run / "uploads" / "folder" / "summary.txt").read_text() == "done"


def test_nothing_that_is_shipped_needs_more_than_the_oldest_python(far: Path) -> None:
    done = vermin(far)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_check_finds_what_the_oldest_python_lacks(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text("import dataclasses\n")
    assert vermin(tmp_path).returncode == 1


def vermin(folder: Path) -> subprocess.CompletedProcess[str]:
    argv = [
        sys.executable,
        "-c",
        "import vermin; vermin.main()",
        f"-t=3.{OLDEST}-",
        "--no-tips",
        "--violations",
        str(folder),
    ]
    return subprocess.run(argv, capture_output=True, text=True)
