"""What every Python of a run can import of the project, and what is not hidden by it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.farside.operations import stacks

SHIM = Path(stacks.__file__).parents[1] / "shim"


def write(folder: Path, *empty: str, **files: str) -> Path:
    """`files`: modules in the folder itself."""
    for name, text in {**dict.fromkeys(empty, ""), **{f"{name}.py": text for name, text in files.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A run's project."""
    write(tmp_path / "run" / "iris" / "mylib", "__init__.py", one="WHERE = 'copy'")
    return tmp_path / "run" / "iris"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Its packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    return site


@pytest.fixture
def said(top: Path, tmp_path: Path) -> Callable[..., str]:
    def run(code: str, options: tuple[str, ...] = (), **variables: str) -> str:
        python = tmp_path / "venv" / "bin" / "python"
        argv = [str(python) if python.exists() else sys.executable, *options]
        environment = {"PYTHONPATH": str(SHIM), "HOLDFAST_PROJECT_DIRECTORY": str(top), **variables}
        argv += [] if options else ["-c", code]
        return subprocess.run(argv, env=environment, cwd=tmp_path, text=True, capture_output=True).stdout.strip()

    return run


TRY = """
try:
    import {0}
    print({0}.__file__)
except ImportError:
    print('missing')
"""
FINDER = """
import sys
from importlib.util import spec_from_file_location

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return spec_from_file_location(name, MAPPING[name] + "/__init__.py") if name in MAPPING else None

def install():
    sys.meta_path.append(Finder)
"""
"""As setuptools makes one."""


def test_packages_of_the_top_and_of_src_are_found_from_anywhere(said, top):
    write(top, "src/inner/__init__.py", "single.py", "loose/deep/code.py")
    for name, file in (("mylib.one", "mylib/one.py"), ("inner", "src/inner/__init__.py"), ("single", "single.py")):
        assert said(f"import {name}; print({name}.__file__)") == str(top / file)
    assert said("import loose.deep.code as found; print(found.__file__)") == str(top / "loose/deep/code.py")
    assert said("", ("-m", "mylib.one")) == "" and "copy" in said("import mylib.one; print(mylib.one.WHERE)")


@pytest.mark.parametrize("name", ["wandb", "sitecustomize", "usercustomize", "nothing"])
def test_folders_of_logs_and_data_are_no_packages(said, top, name):
    for folder in ("wandb/run.1", "nothing"):
        (top / folder).mkdir(parents=True)
    (top / "wandb" / "run.1" / "log.py").write_text("")
    write(top, usercustomize="print('hidden')", sitecustomize="print('hidden')")
    assert said("print('quiet')") == "quiet"
    assert name.endswith("customize") or said(TRY.format(name)) == "missing"


def test_a_src_that_is_a_package_itself_is_found_by_its_own_name(said, top):
    write(top, "src/__init__.py", "src/models.py")
    assert said("import src.models; print(src.models.__file__)") == str(top / "src/models.py")
    assert said(TRY.format("models")) == "missing"


def test_what_is_installed_or_of_python_itself_is_not_hidden(said, top, venv):
    write(top, "random.py", "src/logging.py", "datasets/__init__.py", "src/evaluate.py")
    write(venv, "datasets.py", "evaluate.py")
    for name in ("datasets", "evaluate"):
        assert said(TRY.format(name)) == str(venv / f"{name}.py")
    for name in ("random", "logging"):
        assert str(top) not in said(TRY.format(name))


def test_the_package_with_the_projects_own_name_is_not_an_installed_version_of_it(said, top, venv, tmp_path):
    write(venv, "mylib/__init__.py")
    assert said(TRY.format("mylib")) == str(venv / "mylib/__init__.py")
    own = {"HOLDFAST_PROJECT_PACKAGE": "mylib"}
    assert said(TRY.format("mylib"), **own) == str(top / "mylib/__init__.py")
    write(tmp_path, "mylib.py")  # beside the script
    assert said(TRY.format("mylib"), **own) == str(tmp_path / "mylib.py")


@pytest.mark.parametrize("way", ["a path", "a path to src", "a mapping", "PYTHONPATH", "a link"])
def test_an_editable_install_of_the_project_gives_its_copy_and_only_what_no_snapshot_has_of_the_original(
    said, top, venv, tmp_path, way
):
    below = "src/" if way == "a path to src" else ""
    (original := tmp_path / "here" / "iris").mkdir(parents=True)
    for folder, where in ((top, "copy"), (original, "original")):
        write(folder / below / "lib2", "__init__.py", one=f"WHERE = '{where}'")
    write(original / below / "lib2", _version="VERSION = 'made by its build'")
    (tmp_path / "link").symlink_to(original)
    entry = (tmp_path / "link" if way == "a link" else original) / below
    if way == "a mapping":
        write(venv, __editable___lib2_finder=f"MAPPING = {{'lib2': {str(original / 'lib2')!r}}}\n{FINDER}")
        (venv / "lib2.pth").write_text("import __editable___lib2_finder; __editable___lib2_finder.install()\n")
    elif way != "PYTHONPATH":
        (venv / "lib2.pth").write_text(f"{entry}\n")
    variables = {"PYTHONPATH": f"{SHIM}:{original}"} if way == "PYTHONPATH" else {}
    code = "import lib2.one, lib2._version as v; print(lib2.one.WHERE, v.VERSION)"
    assert said(code, HOLDFAST_PROJECT_ORIGINAL=str(original), **variables) == "copy made by its build"


def test_a_python_in_the_project_and_folders_beside_it_stay(said, top, venv, tmp_path):
    write(top, "venv/bin/python")
    (top / "other").mkdir()
    beside = tmp_path / "here-too"
    beside.mkdir()
    (venv / "x.pth").write_text(f"{beside}\n")
    before = said("import sys; print(sys.path[1:])")
    assert said("import sys; print(sys.path[1:])", HOLDFAST_PROJECT_ORIGINAL=str(tmp_path / "here")) == before
    assert str(beside) in before and os.fspath(venv) in before
