from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project.conda_file import read_conda
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.project.spark import SparkDependencies, SparkPackage, read_spark

CASES = Path(__file__).parents[2] / "cases" / "project-files"


def conda(tmp_path: Path, text: str) -> EnvironmentSpec:
    (tmp_path / "c.yml").write_text(text, encoding="utf-8")
    found, problems = read_conda(tmp_path, "c.yml")
    assert found is not None, problems
    return found


def test_the_conda_file_of_the_original_is_read_with_its_lines():
    found, problems = read_conda(CASES / "original-workbench", "aml_config/conda_dependencies.yml")
    assert problems == []
    file = "aml_config/conda_dependencies.yml"
    assert found == EnvironmentSpec(
        file=file,
        python="3.5.2",
        conda=(Requirement("scikit-learn", 5, file), Requirement("ipykernel=4.6.1", 6, file)),
        pip=(
            Requirement("--index-url https://packages.example.org/preview", 10, file),
            Requirement("--extra-index-url https://packages.example.org/simple", 11, file),
            Requirement("azureml-requirements", 12, file),
            Requirement("https://packages.example.org/cntk-2.0-cp35-cp35m-linux_x86_64.whl", 13, file),
            Requirement("azure-ml-api-sdk==0.1.0a10", 14, file),
        ),
        python_from=Requirement("python=3.5.2", 4, file),
    )


@pytest.mark.parametrize(
    ("item", "python"),
    [
        ("python", None),
        ("python=3.11", "3.11"),
        ("python==3.11.*", "3.11"),
        ("python 3.6.*", "3.6"),
        ("python=3.6.2=h0371630_0", "3.6.2"),
        ("conda-forge::python=3.9", "3.9"),
        ("python>=3.10", ">=3.10"),
        ("python >=3.8, <3.12", ">=3.8,<3.12"),
        ("Python=3", "3"),
    ],
)
def test_the_version_of_python_is_taken_out(tmp_path, item, python):
    found = conda(tmp_path, f"dependencies:\n  - '{item}'\n")
    assert (found.python, found.conda) == (python, ())


def test_pip_itself_is_no_conda_requirement_but_its_namesakes_are(tmp_path):
    found = conda(tmp_path, "dependencies: [pip, pip=21.1, pip>=20, pipenv, python-dateutil, {pip: null}]\n")
    assert [each.text for each in found.conda] == ["pipenv", "python-dateutil"]
    assert found.python is None


def test_several_pip_lists_are_one(tmp_path):
    found = conda(tmp_path, "dependencies:\n  - pip: [a]\n  - b\n  - pip: [c]\nchannels: [conda-forge]\n")
    assert [each.text for each in found.pip] == ["a", "c"]
    assert found.channels == ("conda-forge",)


def test_a_file_without_dependencies_needs_nothing(tmp_path):
    assert conda(tmp_path, "name: x\ndependencies:\n") == EnvironmentSpec(file="c.yml")


def test_a_missing_file_is_named_with_what_to_do(tmp_path):
    found, problems = read_conda(tmp_path, "aml_config/gone.yml")
    assert found is None
    assert str(problems[0]).startswith("aml_config/gone.yml: there is no such file. Write one")


def test_the_spark_file_of_the_original_is_read():
    found, problems = read_spark(CASES / "original-workbench", "aml_config/spark_dependencies.yml")
    assert problems == []
    assert found == SparkDependencies(
        configuration={"spark.app.name": "Azure ML Experiment", "spark.yarn.maxAppAttempts": "1"},
        repositories=("https://mmlspark.example.net/maven",),
        packages=(
            SparkPackage("com.microsoft.ml.spark", "mmlspark_2.11", "0.9.9"),
            SparkPackage("com.microsoft.sqlserver", "mssql-jdbc", "6.2.1.jre8"),
        ),
    )
