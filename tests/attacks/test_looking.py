"""Commands that only look at a project start nothing that it names: neither a path of its files nor a name in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.environments.uv_export import export_lock
from holdfast.errors import HoldfastError
from holdfast.farside.environments.user_python import look_at
from holdfast.hosts.client import Client
from holdfast.hosts.host import Local
from holdfast.project.packages_search import read_environment_spec
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.interpreter import find_python
from kit.docker.daemon import Daemon
from kit.docker.images import PYTHON


class Hostile(NamedTuple):
    """A project with programs that leave a word when they are started."""

    root: Path
    left: Path

    def program(self, path: str) -> Path:
        """One that would pass for a Python."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\necho "{path} $*" >> {self.left}\necho 3\n')
        file.chmod(0o755)
        return file

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def says(self) -> str:
        return self.left.read_text() if self.left.exists() else ""


LOOKING = (
    ("submit", "--dry-run", "-c", "evil", "train.py"),
    ("experiment", "submit", "--dry-run", "-c", "evil", "-t", "evil", "train.py"),
    ("environment", "check", "-c", "evil"),
    ("environment", "check", "-c", "evil", "--gpu", "-o", "json"),
    ("environment", "check", "-c", "evil", "--fix"),
    ("environment", "list"),
    ("computetarget", "list"),
    ("computetarget", "show", "evil"),
    ("computetarget", "check", "evil"),
    ("history", "list"),
    ("status",),
    ("runconfiguration", "list"),
    ("submit", "--help"),
)


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    made = Hostile(tmp_path, tmp_path / "left")
    made.write(
        "aml_config/evil.runconfig", "Target: evil\nFramework: Python\nCondaDependenciesFile: requirements.txt\n"
    )
    made.write("train.py", "print(1)\n")
    made.write("requirements.txt", "six\n")
    return made


LOCATIONS = ("bin/tool", "./bin/python3", "{root}/bin/tool", "a-tool", "python")
PAIRS = (*zip(LOCATIONS, ("true", "false") * 3, strict=False), ("python", "false"))


@pytest.mark.parametrize(("location", "is_own"), PAIRS)
def test_a_command_that_looks_does_not_start_the_python_of_a_target(
    hostile: Hostile,
    command: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    location: str,
    is_own: str,
) -> None:
    for name in ("bin/tool", "bin/python", "bin/python3", "path/a-tool", "path/python", "path/python3"):
        hostile.program(name)
    monkeypatch.setenv("PATH", f"{hostile.root}/path{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("VIRTUAL_ENV")  # the active Python is a script that chooses one, by the project's files
    python = location.replace("{root}", str(hostile.root))
    target = f"type: local\npythonLocation: {python}\nuserManagedEnvironment: {is_own}\n"
    hostile.write("aml_config/evil.compute", target)
    for words in LOOKING:
        assert "internal error" not in command(*words).err
        assert hostile.says() == "", words


def test_a_run_that_is_really_submitted_starts_it(bench: Any) -> None:
    tool = Hostile(bench.root, bench.root / "left").program("bin/tool")
    bench.write("aml_config/evil.compute", f"type: local\npythonLocation: {tool}\n")
    bench.write("aml_config/evil.runconfig", "Target: evil\nFramework: Python\n")
    bench.write("train.py", "print(1)\n")
    assert bench.run("submit", "-c", "evil", "train.py").code == 0
    assert "bin/tool train.py" in (bench.root / "left").read_text()


@pytest.mark.parametrize("line", ["submit -c ", "submit -t ", "computetarget check ", "environment check -c "])
def test_completion_starts_nothing(hostile: Hostile, line: str) -> None:
    hostile.write("aml_config/evil.compute", f"type: local\npythonLocation: {hostile.program('bin/tool')}\n")
    variables = {**os.environ, "COMP_LINE": f"holdfast {line}", "_HOLDFAST_COMPLETE": "bash_complete"}
    argv = [sys.executable, "-m", "holdfast"]
    done = subprocess.run(argv, cwd=hostile.root, env=variables, capture_output=True, text=True, check=False)
    assert "evil" in done.stdout
    assert hostile.says() == ""


def test_the_far_side_reads_a_python_and_does_not_start_it(hostile: Hostile, tmp_path: Path) -> None:
    tool = hostile.program("venv/bin/python")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    with Local(tmp_path / "home", os.environ).connect() as connection:
        with pytest.raises(HoldfastError, match="Checks run no program"):
            Client(connection).environment_check({"python": str(tool)})
        tool.write_bytes(b"\x7fELF")
        found = Client(connection).environment_check({"python": str(tool)})
    assert (found.python, found.path) == ("3.11.2", str(tmp_path / "venv"))
    assert hostile.says() == ""


def test_what_is_read_is_what_the_python_itself_says() -> None:
    question = "import sys, json; print(json.dumps([sys.version_info[:2], sys.prefix, sys.path]))"
    for python in {sys.executable, os.path.realpath(sys.executable)}:
        said = subprocess.run([python, "-c", question], cwd="/", capture_output=True, text=True, check=True).stdout
        version, prefix, path = json.loads(said)
        found = look_at(python)
        assert found.version.startswith("{}.{}".format(*version))
        assert os.path.realpath(found.prefix) == os.path.realpath(prefix)
        wanted = [each for each in path if each.endswith("-packages") and os.path.isdir(each)]
        assert [each for each in found.folders if each in wanted] == wanted


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("3.11.4\n", "3.11.4"),
        ("3.11\n", "3.11.10"),
        ("mine:3.11.4", "mine"),
        ("system\n3.11.4\n", "3.11.4"),
        ("../../../project/evil", None),
        ("/project/evil", None),
        ("none", None),
    ],
)
def test_pyenvs_choice_is_read_and_not_asked_for(
    hostile: Hostile, tmp_path: Path, chosen: str, expected: str | None
) -> None:
    pyenv = tmp_path / "pyenv"
    for version in ("3.11.4", "3.11.10", "mine"):
        hostile.program(f"pyenv/versions/{version}/bin/python")
    shim = hostile.program("pyenv/shims/python")
    hostile.program("project/evil/bin/python")
    project = tmp_path / "project"
    (project / ".python-version").write_text(chosen)
    context = Context(tmp_path, {"PATH": str(shim.parent)}, project, tmp_path, only_looks=True)
    found = find_python(None, project, context)
    assert found == str(shim if expected is None else pyenv / "versions" / expected / "bin" / "python")
    assert hostile.says() == ""


def test_a_lock_is_read_without_what_the_project_says_to_uv(
    hostile: Hostile, command: Callable[..., Any], tmp_path: Path
) -> None:
    hostile.write("aml_config/evil.compute", "type: local\nuserManagedEnvironment: false\n")
    hostile.write("aml_config/evil.runconfig", "Target: evil\nFramework: Python\nCondaDependenciesFile: uv.lock\n")
    hostile.program(".venv/bin/python")
    hostile.program(".venv/bin/python3")
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion_info = 3.11.2\n")
    (tmp_path / ".python-version").write_text(f"{tmp_path}/.venv/bin/python\n")
    trap = f"open({str(hostile.left)!r}, 'a').write('built')\n"
    (tmp_path / "backend.py").write_text(trap)
    (tmp_path / "setup.py").write_text(trap)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "p"\ndynamic = ["version"]\nrequires-python = ">=3.10"\ndependencies = []\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        f'[tool.uv]\npackage = true\ncache-dir = "{tmp_path}/of-uv"\nkeyring-provider = "subprocess"\n'
    )
    (tmp_path / "uv.lock").write_text(
        'version = 1\nrequires-python = ">=3.10"\n\n[[package]]\nname = "p"\nsource = { editable = "." }\n'
    )
    assert command("submit", "--dry-run", "-c", "evil", "train.py").code == 0
    command("environment", "check", "-c", "evil")
    assert hostile.says() == ""
    assert not (tmp_path / "of-uv").exists()


def test_uv_is_asked_for_a_lock_with_every_switch(tmp_path: Path) -> None:
    """With `--frozen`, uv 0.13 opens no connection for `export`: `--offline` holds for one that would, and no project
    shows that it is missing."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1"\n')
    (tmp_path / "uv.lock").write_text("version = 1\n")
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n')
    uv.chmod(0o755)
    spec, problems = read_environment_spec(tmp_path, "uv.lock")
    assert spec is not None, problems
    export_lock(spec, tmp_path, str(uv), tmp_path / "cache", tmp_path)
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:2] == ["export", "--project"]
    assert {"--no-config", "--no-cache", "--frozen", "--no-emit-project", "--offline"} <= set(words)


def test_a_check_of_a_container_starts_nothing_of_the_project(
    holdfast: Callable[..., Any], docker: Daemon, tmp_path: Path, needs: Callable[..., None]
) -> None:
    needs("gcc")
    programs = tmp_path / "programs"
    programs.mkdir(mode=0o777)
    programs.chmod(0o777)
    source = '#include <fcntl.h>\nint main(void) { return creat("/bin/left", 0666) < 0; }\n'
    subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", str(programs / "sh")], input=source, text=True, check=True)
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "here.compute").write_text(
        f"type: docker\nbaseDockerImage: {PYTHON}\nvolumes:\n- {programs}:/bin\n"
        "dockerArguments:\n- --env=LD_PRELOAD=/bin/none.so\n- --hostname=of-the-project\n"
    )
    result = holdfast("computetarget", "check", "here")
    assert os.listdir(programs) == ["sh"]
    assert result.code == 0, result.err
