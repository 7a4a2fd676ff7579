from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ConfigurationError, UnknownName, UsageError
from holdfast.project.compute import BUILTIN_LOCAL
from holdfast.project.configuration import load_configuration
from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.folder import Project, check_name
from holdfast.project.packages_wish import PackagesWish
from holdfast.project.runconfig import RunConfiguration
from holdfast.project.spark import SparkDependencies
from kit.projects import home, project_at

CASES = Path(__file__).parents[2] / "cases" / "project-files"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "aml_config"
    folder.mkdir()
    (folder / "gpu.compute").write_text("type: docker\nbaseDockerImage: debian\n")
    (folder / "gpu.runconfig").write_text("Target: gpu\nFramework: Python\n")
    (folder / "conda_dependencies.yml").write_text("dependencies: [python=3.11]\n")
    (folder / "other.compute").write_text("type: local\n")
    return project_at(tmp_path)


@pytest.mark.parametrize("name", [None, "local", "local.runconfig"])
def test_a_bare_folder_runs_with_the_built_in_configuration(tmp_path, name):
    configuration = load_configuration(project_at(tmp_path), name, None)
    assert (configuration.run, configuration.target) == (RunConfiguration("local", "local"), BUILTIN_LOCAL)
    assert configuration.warnings == () and configuration.environment is None


def test_a_bare_folder_needs_no_yaml(tmp_path):
    code = (
        "import sys; from pathlib import Path; from holdfast.project.configuration import load_configuration;"
        "from holdfast.project.folder import find_project;"
        "folder = Path(sys.argv[1]);"
        "load_configuration(find_project(folder, folder), None, None); print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("form", ["gpu", "gpu.runconfig", "aml_config/gpu.runconfig", "./aml_config/gpu.runconfig"])
def test_a_run_configuration_may_be_named_or_pointed_at(project, form):
    assert load_configuration(project, form, None).run.name == "gpu"


def test_a_run_configuration_may_be_pointed_at_from_below(project, monkeypatch):
    (project.root / "src").mkdir()
    monkeypatch.chdir(project.root / "src")
    assert load_configuration(project, "../aml_config/gpu.runconfig", None).run.name == "gpu"
    assert load_configuration(project, str(project.root / "aml_config" / "gpu.runconfig"), None).run.name == "gpu"


@pytest.mark.parametrize("name", ["../gpu", "a/b", "..", "", "/etc/x.runconfig", "a\\b", "../x/gpu.runconfig"])
def test_a_name_that_is_a_path_to_elsewhere_is_refused(project, name):
    with pytest.raises(UsageError):
        load_configuration(project, name, None)
    with pytest.raises(UsageError):
        load_configuration(project, None, name)


@pytest.mark.parametrize(
    ("names", "valid", "hints"),
    [
        (("GPU", None), ["gpu", "local"], ["Did you mean `gpu`?", "holdfast runconfiguration list"]),
        (("other", None), ["gpu", "local"], ["holdfast runconfiguration create -n other -t other"]),
        (("gpu", "cpu"), ["gpu", "local", "other"], ["holdfast computetarget attach"]),
    ],
    ids=["a configuration", "one that is a target only", "a target"],
)
def test_an_unknown_name_lists_the_valid_ones_and_says_what_to_do(project, names, valid, hints):
    with pytest.raises(UnknownName) as caught:
        load_configuration(project, *names)
    assert caught.value.valid == valid
    assert all(hint in caught.value.hint for hint in hints)


def test_the_target_of_the_command_line_wins(project):
    configuration = load_configuration(project, "gpu", "other")
    assert (configuration.run.target, configuration.target.name) == ("other", "other")


def test_the_conda_file_is_read_where_the_environment_is_managed(project):
    managed = load_configuration(project, "gpu", None).environment
    assert managed is not None and managed.python == "3.11"
    (project.root / "aml_config" / "conda_dependencies.yml").write_text("- broken")
    assert load_configuration(project, "gpu", "local").environment is None
    with pytest.raises(ConfigurationError):
        load_configuration(project, "gpu", None)


def test_another_conda_file_may_be_given(project):
    (project.root / "other.yml").write_text("dependencies: [python=3.6]\n")
    configuration = load_configuration(project, "gpu", None, PackagesWish("other.yml"))
    assert configuration.environment is not None and configuration.environment.python == "3.6"
    assert configuration.run.conda_dependencies_file == "other.yml"


def test_the_spark_file_is_read_for_pyspark_only(project):
    folder = project.root / "aml_config"
    (folder / "spark_dependencies.yml").write_text("configuration: {spark.app.name: x}\n")
    assert load_configuration(project, "gpu", "local").spark is None
    (folder / "gpu.runconfig").write_text("Target: gpu\nFramework: PySpark\n")
    assert load_configuration(project, "gpu", "local").spark == SparkDependencies({"spark.app.name": "x"})
    (folder / "spark_dependencies.yml").unlink()
    assert load_configuration(project, "gpu", "local").spark == SparkDependencies()


def test_another_spark_file_may_be_given_and_must_be_there(project):
    (project.root / "aml_config" / "gpu.runconfig").write_text("Target: gpu\nFramework: PySpark\n")
    (project.root / "other.yml").write_text("repositories: [https://host/maven]\n")
    configuration = load_configuration(project, "gpu", "local", spark_file="other.yml")
    assert configuration.spark == SparkDependencies(repositories=("https://host/maven",))
    assert configuration.run.spark_dependencies_file == "other.yml"
    with pytest.raises(ConfigurationError, match=r"gone\.yml: "):
        load_configuration(project, "gpu", "local", spark_file="gone.yml")


@pytest.mark.parametrize(
    ("runconfig", "other", "found"),
    [
        ("Target: gpu\nFramework: Ruby\n", ("conda", "depends: []\n"), [(2, "Framework"), (1, "depends")]),
        ("Target: gpu\n", ("spark", "packages: [{group: a, artifact: b}]\n"), [(1, "Framework"), (1, "packages")]),
    ],
    ids=["of the conda file", "of the spark file, which is read if there is no framework"],
)
def test_the_problems_of_all_files_are_reported_at_once(project, runconfig, other, found):
    folder = project.root / "aml_config"
    (folder / "gpu.runconfig").write_text(runconfig)
    (folder / "gpu.compute").write_text("type: docker\nbaseImage: debian\n")
    (folder / f"{other[0]}_dependencies.yml").write_text(other[1])
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(project, "gpu", None)
    problems: list[Any] = list(caught.value.problems)
    files = ["aml_config/gpu.runconfig", "aml_config/gpu.compute", f"aml_config/{other[0]}_dependencies.yml"]
    assert [each.file for each in problems] == files
    assert [(each.line, each.key) for each in problems] == [found[0], (2, "baseImage"), found[1]]
    assert ("PySpark" in problems[0].message) is (other[0] == "spark")


def test_warnings_come_with_the_configuration():
    configuration = load_configuration(project_at(CASES / "original-workbench"), "my_dsvm", None)
    assert [each.key for each in configuration.warnings] == ["password"]


def test_a_target_that_the_file_misnames_is_a_problem_of_that_line(project):
    (project.root / "aml_config" / "gpu.runconfig").write_text("Framework: Python\nTarget: gpuu\n")
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(project, "gpu", None)
    assert [str(each) for each in caught.value.problems] == [
        "aml_config/gpu.runconfig:2: Target: there is no compute target `gpuu`. Write `Target: gpu`."
    ]
    assert load_configuration(project, "gpu", "local").target == BUILTIN_LOCAL


@pytest.mark.parametrize("name", ["a/b", "..", "", "-x", "a b", ".x", "é", "x" * 65, "a\n"])
def test_a_new_file_gets_no_odd_name(name):
    with pytest.raises(UsageError):
        check_name("compute target", name)


def test_a_missing_framework_is_recorded_without_a_warning(tmp_path):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "old.runconfig").write_text("Target: local\n")
    configuration = load_configuration(Project(tmp_path, "0" * 32, "iris", is_bare=False, home=home()), "old", None)
    assert configuration.run.framework_was_missing
    assert [each for each in configuration.warnings if each.key == "Framework"] == []


@pytest.mark.parametrize(
    ("compute", "runconfig", "is_fine"),
    [
        ("type: docker\n", "", True),
        ("type: remotedocker\naddress: gpu1\n", "CondaDependenciesFile: aml_config/conda_dependencies.yml\n", True),
        ("type: docker\n", "CondaDependenciesFile: requirements.txt\n", False),
        ("type: local\nuserManagedEnvironment: false\n", "", False),
    ],
)
def test_a_container_needs_no_list_of_packages_unless_one_is_named(tmp_path, compute, runconfig, is_fine):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "gpu.compute").write_text(compute)
    (tmp_path / "aml_config" / "gpu.runconfig").write_text(f"Target: gpu\nFramework: Python\n{runconfig}")
    project = project_at(tmp_path)
    if is_fine:
        assert load_configuration(project, "gpu", None).environment == EnvironmentSpec()
    else:
        with pytest.raises(ConfigurationError, match=r"requirements\.txt|conda_dependencies\.yml"):
            load_configuration(project, "gpu", None)


def test_a_name_in_a_hint_keeps_its_letters_and_hides_nothing():
    hint = UnknownName("compute target", "zürich", ["zürich\n1", "blank\u2800"]).hint
    assert "`zürich\\n1`" in hint and "blank\\u2800" in UnknownName("compute target", "x", ["blank\u2800"]).hint
