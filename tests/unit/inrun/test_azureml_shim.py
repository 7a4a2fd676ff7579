from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .conftest import SHIM

WHO = """
import azureml
try:
    import azureml.logging
    print(azureml.logging.__file__)
except ImportError as error:
    print(type(error).__name__, error.name)
print(getattr(azureml, "REAL", "not the real one"))
"""
LENT = str(SHIM / "azureml" / "logging.py")


def write(file: Path, text: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_an_old_script_logs_and_uploads_as_it_always_did(run):
    done = run.execute(
        """
        from azureml.logging import get_azureml_logger
        logger = get_azureml_logger()
        logger.log("Accuracy", 0.9).wait()
        logger.log("Curve", [0.1, 0.2])
        logger.log("Kernel", "rbf").wait(60)
        logger.upload("artifact/path", "text").wait()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert run.values() == {"Accuracy": 0.9, "Curve": [0.1, 0.2], "Kernel": "rbf"}
    assert (run.directory / "uploads/artifact/path").read_text() == "text"


CORE = "import azureml.core; print(azureml.core.__file__)"
EXTENDS = "REAL = 'real'; __path__ = __import__('pkgutil').extend_path(__path__, __name__)"


@pytest.mark.parametrize(
    ("files", "more", "said"),
    [
        ({}, "", [LENT, "not the real one"]),
        (
            {"one/azureml/__init__.py": "REAL = 'real'", "one/azureml/logging.py": ""},
            "",
            ["{}/one/azureml/logging.py", "real"],
        ),
        (
            {"one/azureml/__init__.py": "REAL = 'real'; from azureml import core", "one/azureml/core.py": ""},
            "",
            [LENT, "real"],
        ),
        (
            {"one/azureml/__init__.py": EXTENDS, "one/azureml/logging.py": ""},
            "",
            ["{}/one/azureml/logging.py", "real"],
        ),
        (
            {"one/azureml/core.py": "", "two/azureml/logging.py": ""},
            CORE,
            ["{}/two/azureml/logging.py", "not the real one", "{}/one/azureml/core.py"],
        ),
        ({"one/azureml/core.py": ""}, CORE, [LENT, "not the real one", "{}/one/azureml/core.py"]),
        (
            {"one/azureml.py": "REAL = 'a module'"},
            "",
            ["ModuleNotFoundError azureml.logging", "a module"],
        ),
    ],
    ids=[
        "no real package",
        "a real one with logging",
        "a real one without",
        "one that extends its path",
        "a namespace package with logging",
        "a namespace package without",
        "a real module",
    ],
)
def test_a_real_package_is_left_as_it_is_and_lent_logging_where_it_has_none(run, tmp_path, files, more, said):
    for name, text in files.items():
        write(tmp_path / name, text)
    done = run.execute(WHO + more, tmp_path / "one", tmp_path / "two")
    assert done.stdout.splitlines() == [each.format(tmp_path) for each in said], done.stderr


def test_a_real_package_that_cannot_be_imported_says_so(run, tmp_path):
    write(tmp_path / "real/azureml/__init__.py", "import a_missing_dependency")
    done = run.execute(WHO, tmp_path / "real")
    assert "No module named 'a_missing_dependency'" in done.stderr


def test_a_package_that_an_editable_install_finds_is_the_real_one(run, tmp_path):
    own = write(tmp_path / "real/azureml/logging.py")
    package = write(tmp_path / "real/azureml/__init__.py", "REAL = 'editable'")
    finder = f"""
import sys
from importlib.util import spec_from_file_location
class Finder:
    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, {str(package)!r}) if name == "azureml" else None
sys.meta_path.append(Finder())
"""
    assert run.execute(finder + WHO).stdout.splitlines() == [str(own), "editable"]


@pytest.mark.parametrize("real", [True, False])
def test_the_shim_of_another_version_on_the_path_is_not_taken_for_a_real_package(run, tmp_path, real):
    other = tmp_path / "far/holdfast/farside/shim"
    shutil.copytree(SHIM, other)
    more = [other]
    if real:
        write(tmp_path / "real/azureml/__init__.py", "REAL = 'real'")
        more.append(tmp_path / "real")
    done = run.execute(WHO, *more)
    assert done.stdout.splitlines() == [LENT, "real" if real else "not the real one"], done.stderr
