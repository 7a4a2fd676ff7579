from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .conftest import SHIM, InRun

WHO = """
import azureml
try:
    import azureml.logging
    print(azureml.logging.__file__)
except ImportError as error:
    print(error)
print(getattr(azureml, "REAL", "not the real one"))
"""
LENT = str(SHIM / "azureml" / "logging.py")


def write(file: Path, text: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_an_old_script_logs_and_uploads_as_it_always_did(run: InRun) -> None:
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


def test_without_a_real_package_the_shim_is_used(run: InRun) -> None:
    assert run.execute(WHO).stdout.splitlines() == [LENT, "not the real one"]


def test_a_real_package_with_logging_is_left_as_it_is(run: InRun, tmp_path: Path) -> None:
    write(tmp_path / "real/azureml/__init__.py", "REAL = 'real'")
    own = write(tmp_path / "real/azureml/logging.py")
    assert run.execute(WHO, tmp_path / "real").stdout.splitlines() == [str(own), "real"]


def test_a_real_package_without_logging_is_lent_one(run: InRun, tmp_path: Path) -> None:
    write(tmp_path / "real/azureml/__init__.py", "REAL = 'real'; from azureml import core")
    write(tmp_path / "real/azureml/core.py")
    assert run.execute(WHO, tmp_path / "real").stdout.splitlines() == [LENT, "real"]


def test_a_real_package_that_extends_its_path_keeps_its_own_logging(run: InRun, tmp_path: Path) -> None:
    text = "REAL = 'real'; __path__ = __import__('pkgutil').extend_path(__path__, __name__)"
    write(tmp_path / "real/azureml/__init__.py", text)
    own = write(tmp_path / "real/azureml/logging.py")
    assert run.execute(WHO, tmp_path / "real").stdout.splitlines() == [str(own), "real"]


def test_a_namespace_package_with_logging_is_left_as_it_is(run: InRun, tmp_path: Path) -> None:
    write(tmp_path / "one/azureml/core.py")
    own = write(tmp_path / "two/azureml/logging.py")
    script = WHO + "import azureml.core; print(azureml.core.__file__)"
    done = run.execute(script, tmp_path / "one", tmp_path / "two")
    assert done.stdout.splitlines() == [str(own), "not the real one", str(tmp_path / "one/azureml/core.py")]


def test_a_namespace_package_without_logging_is_lent_one(run: InRun, tmp_path: Path) -> None:
    core = write(tmp_path / "real/azureml/core.py")
    script = WHO + "import azureml.core; print(azureml.core.__file__)"
    done = run.execute(script, tmp_path / "real")
    assert done.stdout.splitlines() == [LENT, "not the real one", str(core)]


def test_a_real_module_is_left_as_it_is(run: InRun, tmp_path: Path) -> None:
    write(tmp_path / "real/azureml.py", "REAL = 'a module'")
    first, second = run.execute(WHO, tmp_path / "real").stdout.splitlines()
    assert "'azureml' is not a package" in first
    assert second == "a module"


def test_a_real_package_that_cannot_be_imported_says_so(run: InRun, tmp_path: Path) -> None:
    write(tmp_path / "real/azureml/__init__.py", "import a_missing_dependency")
    done = run.execute(WHO, tmp_path / "real")
    assert "No module named 'a_missing_dependency'" in done.stderr


def test_a_package_that_an_editable_install_finds_is_the_real_one(run: InRun, tmp_path: Path) -> None:
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
def test_the_shim_of_another_version_on_the_path_is_not_taken_for_a_real_package(
    run: InRun, tmp_path: Path, real: bool
) -> None:
    other = tmp_path / "far/holdfast/farside/shim"
    shutil.copytree(SHIM, other)
    more = [other]
    if real:
        write(tmp_path / "real/azureml/__init__.py", "REAL = 'real'")
        more.append(tmp_path / "real")
    done = run.execute(WHO, *more)
    assert done.stdout.splitlines() == [LENT, "real" if real else "not the real one"], done.stderr
