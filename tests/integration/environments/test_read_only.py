"""An environment is read-only for its runs, and Python still keeps its bytecode there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.remote.benches import FarBench, far_bench  # noqa: F401 - a fixture
from integration.remote.conftest import box, boxes, client, kit_folder  # noqa: F401 - fixtures

SCRIPT = """
import json, os, six, sys
folder = os.path.dirname(six.__file__)

def attempt(work):
    try:
        work()
    except OSError as error:
        return type(error).__name__
    return "done"

tried = {
    "append": attempt(lambda: open(six.__file__, "a").write("broken = True\\n")),
    "add": attempt(lambda: open(os.path.join(folder, "new.py"), "w").close()),
    "remove": attempt(lambda: os.unlink(six.__file__)),
    "rename": attempt(lambda: os.rename(six.__file__, os.path.join(folder, "seven.py"))),
    "settings": attempt(lambda: open(os.path.join(sys.prefix, "pyvenv.cfg"), "a").close()),
    "beside": attempt(lambda: open(os.path.join(sys.prefix, "new"), "w").close()),
    "programs": attempt(lambda: os.rename(os.path.join(sys.prefix, "bin"), os.path.join(sys.prefix, "bin2"))),
    "mark": attempt(lambda: open(os.path.join(sys.prefix, ".complete"), "a").close()),
}
kept = os.listdir(os.path.join(folder, "__pycache__"))
print(json.dumps({"tried": tried, "uid": os.getuid(), "bytecode": [name for name in kept if name.startswith("six.")]}))
"""


@pytest.fixture
def bench(far_bench: Callable[..., FarBench]) -> FarBench:  # noqa: F811
    made = far_bench()
    made.attach(made.box, "userManagedEnvironment: false\n")
    made.write("aml_config/conda_dependencies.yml", "dependencies:\n  - pip:\n      - six==1.16.0\n")
    made.write("t.py", SCRIPT)
    return made


def test_a_run_can_change_nothing_of_its_environment_but_bytecode_is_kept(bench: FarBench) -> None:
    before = None
    for _ in range(2):
        result = bench.submit("t.py", timeout=180)
        assert result.code == 0, result.err
        said = json.loads(result.out)
        assert said["uid"] == bench.box.account.uid != 0
        assert set(said["tried"].values()) == {"PermissionError"}, said["tried"]
        assert len(said["bytecode"]) == 1
        (environment,) = (bench.home / "environments").glob("*/lib/python3*/site-packages/six.py")
        cached = _cached(bench.home / "cache", environment)
        assert before in (None, cached), "the package cache is as it was"
        before = cached
        assert not list((bench.home / "cache").rglob("six*.pyc")), "bytecode is the environment's, not the cache's"
    cleaned = bench.run("experiment", "clean", "--all", "--environments", "--yes", "-t", bench.box.name)
    assert cleaned.code == 0, cleaned.err
    assert not list((bench.home / "environments").glob("*/.complete")), "who owns it may remove it"


def _cached(cache: Path, installed: Path) -> str:
    """The cache's name of that file: the same file by another link."""
    (found,) = [each for each in cache.rglob("six.py") if each.samefile(installed)]
    return hashlib.sha256(found.read_bytes()).hexdigest()
