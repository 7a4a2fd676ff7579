from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.runconfig import KEYS, RunConfiguration, read_runconfig, render_runconfig, runconfig_names
from holdfast.written_files import UNLIMITED


def write(tmp_path: Path, text: str, name: str = "x") -> Path:
    (tmp_path / "aml_config").mkdir(exist_ok=True)
    (tmp_path / "aml_config" / f"{name}.runconfig").write_text(text, encoding="utf-8")
    return tmp_path


def read(tmp_path: Path, text: str) -> RunConfiguration:
    configuration, problems = read_runconfig(ConfigurationFolders(write(tmp_path, text)), "x")
    assert configuration is not None, problems
    return configuration


def test_a_bare_folder_has_the_built_in_local_configuration(tmp_path):
    built_in = RunConfiguration("local", "local", framework="Python")
    assert read_runconfig(ConfigurationFolders(tmp_path), "local") == (built_in, [])
    assert runconfig_names(ConfigurationFolders(tmp_path)) == ["local"]


def test_null_means_the_default_everywhere(tmp_path):
    keys = [key for key in KEYS if key not in ("Target", "Framework")]
    text = "Target: local\nFramework: Python\n" + "".join(f"{key}: null\n" for key in keys)
    assert read(tmp_path, text) == RunConfiguration("x", "local", file="aml_config/x.runconfig")


def test_variables_are_the_text_that_is_written(tmp_path):
    values = "{A: 010, B: yes, C: 1.50, D: '', E: null, F: 2001-01-01, G: 1:30}"
    text = f"Target: local\nEnvironmentVariables: {values}\n"
    assert read(tmp_path, text).environment_variables == {
        "A": "010", "B": "yes", "C": "1.50", "D": "", "E": "", "F": "2001-01-01", "G": "1:30",
    }  # fmt: skip


def test_arguments_are_the_text_that_is_written(tmp_path):
    text = "Target: local\nArgumentVector: [train.py, --lr, 1e-3, --flag, yes, '']\n"
    assert read(tmp_path, text).argument_vector == ("train.py", "--lr", "1e-3", "--flag", "yes", "")


def test_a_file_without_framework_means_pyspark_and_says_so(tmp_path):
    configuration, problems = read_runconfig(ConfigurationFolders(write(tmp_path, "Target: local\n")), "x")
    assert configuration is not None
    assert (configuration.framework, configuration.framework_was_missing) == ("PySpark", True)
    assert [(each.key, each.severity) for each in problems] == [("Framework", "warning")]


def test_keys_of_data_preparation_are_no_problem_and_can_be_named(tmp_path):
    text = "Target: local\nFramework: Python\nUseSampling: true\nDataSourceSettings: {a: {b: c}}\n"
    configuration, problems = read_runconfig(ConfigurationFolders(write(tmp_path, text)), "x")
    assert configuration is not None
    assert configuration.ignored == ("UseSampling", "DataSourceSettings")
    assert problems == []


def test_the_early_name_of_the_conda_file_is_understood(tmp_path):
    found = read(tmp_path, "Target: local\nCondaFile: aml_config\\gpu.yml\n")
    assert found.conda_dependencies_file == "aml_config/gpu.yml"


@pytest.mark.parametrize("name", ["API_KEY", "apikey", "HF_TOKEN", "DB_PASSWORD", "MY_SECRET", "AWS_SECRET_ACCESS_KEY"])
def test_a_variable_that_looks_like_a_secret_is_warned_of_without_its_value(tmp_path, name):
    others = ["TOKENIZERS_PARALLELISM", "KEYBOARD", "MONKEY", "SSH_KEY_FILE", "PATH"]  # resemble one only
    lines = "".join(f"  {each}: hunter2\n" for each in (name, *others))
    text = f"Target: local\nFramework: Python\nEnvironmentVariables:\n{lines}"
    _, problems = read_runconfig(ConfigurationFolders(write(tmp_path, text)), "x")
    assert [(each.line, each.severity) for each in problems] == [(4, "warning")]
    assert "Secrets:" in problems[0].remedy
    assert "hunter2" not in str(problems)


def test_a_secret_with_its_value_is_refused_without_repeating_it(tmp_path):
    configuration, problems = read_runconfig(
        ConfigurationFolders(write(tmp_path, "Target: local\nSecrets: ['A=hunter2']\n")), "x"
    )
    assert configuration is None
    assert "hunter2" not in str(problems)


def test_a_target_given_otherwise_stands_for_the_one_in_the_file(tmp_path):
    root = write(tmp_path, "Target: gone\nFramework: Python\n")
    assert read_runconfig(ConfigurationFolders(root), "x")[0] is None
    configuration, problems = read_runconfig(ConfigurationFolders(root), "x", "local")
    assert configuration is not None and configuration.target == "local" and problems == []


def test_a_written_configuration_reads_as_the_same(tmp_path):
    configuration = RunConfiguration(
        name="x",
        target="local",
        argument_vector=("train.py", "--name", 'it\'s: "x"', "--yes", "yes", "- a", "#"),
        environment_variables={"A": "010", "B": "", "C D": "null"},
        framework="PySpark",
        conda_dependencies_file="a b.yml",
        spark_dependencies_file="s.yml",
        prepare_environment=False,
        tracked_run=False,
        secrets=("TOKEN",),
        time_limit=5400.0,
        grace_time=0.5,
        file="aml_config/x.runconfig",
    )
    assert read(tmp_path, render_runconfig(configuration)) == configuration


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [("500 MB", 500_000_000), ("0", 0), ("none", UNLIMITED), ("None", UNLIMITED), ("1.5GB", 1_500_000_000)],
)
def test_what_comes_home_is_read_and_written_as_it_was(tmp_path, written, bytes_):
    text = f"Target: local\nFramework: Python\nOutputsLimit: {written}\nOutputs: [checkpoints/, '*.pt', ./logs]\n"
    found = read(tmp_path, text)
    assert (found.outputs, found.outputs_limit) == (("checkpoints/", "*.pt", "logs"), bytes_)
    assert read(tmp_path, render_runconfig(found)) == found


def test_ignored_files_that_ship_are_read_and_written_as_they_were(tmp_path):
    found = read(tmp_path, "Target: local\nFramework: Python\nInclude: [data/, ./*.bin, 'w/**/*.pt']\n")
    assert found.include == ("/data/", "/*.bin", "w/**/*.pt")
    assert read(tmp_path, render_runconfig(found)) == found


@pytest.mark.parametrize(
    "line",
    [
        *("OutputsLimit: much", "OutputsLimit: 500", "Outputs: [/tmp]", "Outputs: [x/../y]", "Outputs: ['', a]"),
        *("Include: [/tmp]", "Include: [~/x]", "Include: [../x]", "Include: ['']"),
    ],
)
def test_a_wish_for_files_that_cannot_be_meant_is_an_error_at_its_line(tmp_path, line):
    configuration, problems = read_runconfig(
        ConfigurationFolders(write(tmp_path, f"Target: local\nFramework: Python\n{line}\n")), "x"
    )
    assert configuration is None
    assert [(each.line, each.key) for each in problems] == [(3, line.partition(":")[0])]
    assert problems[0].remedy
