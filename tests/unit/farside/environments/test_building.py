"""An environment is built once, completely or not at all, and then never changed."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments import built_environment
from holdfast.farside.environments.built_environment import Environment
from holdfast.farside.system import kernel
from holdfast.farside.system.layout import BUILD_BYTE, USE_BYTE, Home
from holdfast.farside.system.refusal import Refused


@pytest.fixture
def environment(home: Home) -> Environment:
    return Environment(home, "abc")


def fill(environment: Environment, python: str = "/usr/bin/env", **about: Any) -> Callable[[], dict[str, Any]]:
    def build() -> dict[str, Any]:
        library = Path(environment.path) / "lib" / "numpy"
        library.mkdir(parents=True)
        (library / "__init__.py").write_text("x = 1\n")
        (Path(environment.path) / "bin").mkdir()
        (Path(environment.path) / "bin" / "python").symlink_to(python)
        return {"packages": ["numpy==1"], **about}

    return build


def in_another_process(work: Callable[[], int]) -> int:
    """Record locks belong to a process, so this forks: what `work` returns is the exit code."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        except BaseException:  # noqa: BLE001 - the parent sees that it failed
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ensure(environment: Environment, build: Callable[[], dict[str, Any]], anew: bool = False) -> bool:
    return environment.ensure(build, anew, lambda seconds: None, lambda *args, **named: None)


def test_it_is_built_once(environment):
    assert not environment.use()
    assert ensure(environment, fill(environment))
    assert not ensure(environment, fill(environment))
    assert environment.use()
    assert environment.mark()["packages"] == ["numpy==1"]


def test_a_build_that_fails_leaves_nothing_and_others_may_try(environment, home):
    def build():
        fill(environment)()
        raise Refused("preparation", "no")

    with pytest.raises(Refused):
        ensure(environment, build)

    assert not os.path.exists(environment.path)
    assert another_may_build_it_anew(home)


@pytest.mark.parametrize("lost", [built_environment.COMPLETE, "bin/python"])
def test_one_without_its_mark_or_its_python_is_built_anew(environment, lost):
    ensure(environment, fill(environment))
    path = Path(environment.path) / lost
    for folder in (path.parent, Path(environment.path)):
        os.chmod(folder, 0o755)
    path.unlink()
    (Path(environment.path) / "half").write_text("installed")

    assert not environment.use()
    assert ensure(environment, fill(environment))
    assert not (Path(environment.path) / "half").exists()


def test_its_files_cannot_be_changed_and_bytecode_can_be_kept(environment):
    ensure(environment, fill(environment))
    library = Path(environment.path) / "lib" / "numpy"

    for path in (library, library / "__init__.py", library.parent):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o222
    assert stat.S_IMODE((library / "__pycache__").stat().st_mode) & 0o200


def test_a_file_that_the_cache_holds_too_is_read_only_there(environment, tmp_path):
    cached = tmp_path / "cached.py"
    cached.write_text("x = 1\n")

    def build():
        said = fill(environment)()
        os.link(cached, Path(environment.path) / "lib" / "linked.py")
        return said

    ensure(environment, build)

    assert not cached.stat().st_mode & 0o222


def test_it_can_be_built_anew_on_demand_but_not_under_another_run(environment, home):
    ensure(environment, fill(environment))
    first = Path(environment.path).stat().st_ino
    assert not another_may_build_it_anew(home)
    assert Path(environment.path).stat().st_ino == first
    environment.leave()
    assert another_may_build_it_anew(home)


def another_may_build_it_anew(home: Home) -> bool:
    def build() -> int:
        other = Environment(home, "abc")
        try:
            return int(ensure(other, fill(other), anew=True))
        except Refused:
            return 7

    code = in_another_process(build)
    assert code in (1, 7)
    return code == 1


def test_pip_of_another_python_is_not_found_in_its_place(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip3").write_text("its own")

    built_environment.leave_word(str(tmp_path))

    said = subprocess.run([tmp_path / "bin" / "pip", "install", "six"], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (1, "")
    assert "Add the package" in said.stderr
    assert (tmp_path / "bin" / "pip3").read_text() == "its own"


def test_a_mark_that_cannot_be_read_says_nothing(tmp_path):
    (tmp_path / built_environment.COMPLETE).write_text("[1")
    assert built_environment.read_mark(str(tmp_path)) == {}
    assert built_environment.read_mark(str(tmp_path / "none")) == {}


def test_one_that_is_being_removed_is_not_used(environment, home):
    ensure(environment, fill(environment))
    environment.leave()
    remover = os.open(environment.path + ".lock", os.O_RDWR)
    assert kernel.lock(remover, USE_BYTE)

    def use() -> int:
        return int(Environment(home, "abc").use())

    assert in_another_process(use) == 0
    kernel.unlock(remover, USE_BYTE)
    assert in_another_process(use) == 1


@pytest.mark.parametrize("anew", [False, True])
def test_a_builder_is_seen_to_build_until_the_end(environment, anew):
    if anew:
        ensure(environment, fill(environment))
    seen = []

    def build():
        holders = lambda: int(kernel.lock_holder(environment.path + ".lock", BUILD_BYTE) is not None)  # noqa: E731
        seen.append(in_another_process(holders))
        return fill(environment)()

    assert ensure(environment, build, anew=anew)
    assert seen == [1]


def test_the_python_of_an_image_need_not_be_on_this_machine(environment):
    ensure(environment, fill(environment, "/only/in/the/image", image="sha256:ab"))
    assert environment.is_complete()
    ensure(environment, fill(environment, "/only/in/the/image", image=""), anew=True)
    assert not environment.is_complete(), "the machine has no such Python"


def test_the_mark_is_written_after_everything_else(environment, monkeypatch) -> None:
    def interrupted(folder: str) -> None:
        assert not environment.is_complete()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(built_environment, "make_read_only", interrupted)
    with pytest.raises(OSError, match="No space"):
        ensure(environment, fill(environment))
    assert not environment.is_complete()
    assert not environment.use()
