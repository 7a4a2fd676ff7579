"""A script that died on a module: what is said depends on where the module is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.history.run_folder import RunFolders
from holdfast.model import Ending, Reason, Run, Status, Submission
from holdfast.project.package_names import package_of
from holdfast.workbench.following.missing_file import missing_file_sentence
from holdfast.workbench.following.missing_module import missing_module

SUBMISSION = Submission("iris_1", 1, "p", "iris", "train.py", (), "local", "box", "remote", "a" * 64, 1.0, "g")
FAILED = Run(SUBMISSION, Status.FAILED, Ending(Reason.EXIT_CODE, code=1))
BUILT = replace(FAILED, environment="e1", packages=("gym==0.26.2", "PyYAML==6.0"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def lacking(module: str) -> str:
    return f"Traceback\nModuleNotFoundError: No module named '{module}'\n"


def said(root: Path, module: str, run: Run = BUILT, file: str = "requirements.txt", python: object = None) -> str:
    folder = root.parent / "state" / "runs" / SUBMISSION.run_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "driver_log").write_text(lacking(module))
    (folder / "configuration.json").write_text(json.dumps({"run_configuration": {"conda_dependencies_file": file}}))
    (folder / "plan.json").write_text(json.dumps({"command": {"python": python}}))
    return missing_file_sentence(root, RunFolders(folder.parents[1]), run)


@pytest.mark.parametrize(
    ("text", "module"),
    [
        (lacking("a.b"), "a.b"),
        ("/v/bin/python3.11: No module named pkg.train\n", "pkg.train"),
        ("[rank0]: ModuleNotFoundError: No module named 'x'; 'x' has no parts\n", ""),
        (lacking("x") + "Traceback\ntorch.distributed.elastic.ChildFailedError: \n====\n", "x"),
        (lacking("apex") + "training without apex\n", ""),
        (lacking("apex") + "Traceback\nValueError: 3\n", ""),
        (lacking("m" * 5000), ""),
        (lacking(".x"), ""),
        (lacking("x..y"), ""),
        ("No module named 'x'\n", ""),
        ("", ""),
    ],
)
def test_only_the_module_that_ended_the_run_is_meant(text, module):
    assert missing_module(text) == module


def test_what_was_printed_before_is_not_taken_for_a_missing_file(root, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "functional.py").write_text("")
    said(root, "x")
    folder = root.parent / "state" / "runs" / SUBMISSION.run_id
    (folder / "driver_log").write_text(f"{tmp_path}/lib/functional.py:377: UserWarning: slow\n{lacking('six')}")
    sentence = missing_file_sentence(root, RunFolders(folder.parents[1]), BUILT)
    assert sentence.endswith("requirements.txt: six")


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("cv2", "opencv-python-headless"),
        ("sklearn.svm", "scikit-learn"),
        ("google.protobuf.x", "protobuf"),
        ("a.b", "a"),
    ],
)
def test_a_module_of_another_name_leads_to_its_package(module, package):
    assert package_of(module) == package


def test_a_module_of_the_project_is_told_where_it_is(root):
    (root / "lib" / "deep" / "tools").mkdir(parents=True)
    (root / "lib" / "deep" / "tools" / "io.py").write_text("")
    assert said(root, "tools.io").endswith("--env PYTHONPATH=lib/deep")
    below = replace(BUILT, submission=replace(SUBMISSION, folder="scripts"))
    assert said(root, "tools.io", below).endswith("--env PYTHONPATH=../lib/deep")


def test_a_file_of_the_project_that_hides_a_package_is_named(root):
    (root / "datasets").mkdir()
    (root / "datasets" / "own.py").write_text("")
    assert said(root, "datasets.features").startswith("Python takes `datasets` from the project (datasets)")


@pytest.mark.parametrize("module", ["gym.wrappers.monitor", "yaml.clib"])
def test_a_part_that_an_installed_package_lacks_is_a_matter_of_its_version(root, module):
    sentence = said(root, module)
    assert "is installed but has no `" in sentence and sentence.endswith("==VERSION")


@pytest.mark.parametrize(
    ("file", "text", "end"),
    [
        ("requirements.txt", "six\n", "Add a line to requirements.txt: Pillow"),
        ("conda.yml", "dependencies: []\n", "Add `- Pillow` below `- pip:` in conda.yml"),
        ("setup.py", "", "Add Pillow to `install_requires` in setup.py"),
        ("uv.lock", "", "Add it: uv add Pillow"),
        ("pyproject.toml[x]", "[project]\nname='x'\n", 'Add "Pillow" to `dependencies` in pyproject.toml'),
        ("pyproject.toml", "[project]\n[project.optional-dependencies]\nviz=['pillow>9']\n", ": --extra viz"),
    ],
)
def test_the_package_is_to_be_named_in_the_file_of_the_run(root, file, text, end):
    (root / file.partition("[")[0]).write_text(text)
    sentence = said(root, "PIL", file=file)
    assert sentence.startswith("In the environment there is no `PIL`, which the package Pillow provides.")
    assert sentence.endswith(end)


def test_ones_own_python_is_named_with_the_line_that_installs(root):
    sentence = said(root, "yaml", FAILED, "aml_config/conda_dependencies.yml", "/usr/bin/python3")
    assert "own Python (/usr/bin/python3), where there is no `yaml`, which the package PyYAML provides." in sentence
    assert "\nTo build an environment: add a line to requirements.txt: PyYAML, and submit with -d " in sentence
    assert "Install it there: /usr/bin/python3 -m pip install PyYAML" in sentence
    (root / "environment.yml").write_text("dependencies: []\n")
    elsewhere = said(root, "six", FAILED, "aml_config/conda_dependencies.yml", {"join": [{"hole": "python"}]})
    assert elsewhere.endswith("below `- pip:` in environment.yml, and submit with -d environment.yml")
    assert "pip install" not in elsewhere
    (root / "environment.yml").write_text("dependencies:\n- pip:\n  - six>=1.10 ; python_version > '3'\n")
    named = said(root, "six", FAILED, "aml_config/conda_dependencies.yml")
    assert named.endswith("`six`. To build an environment: submit with -d environment.yml")
    (root / "environment.yml").rename(root / "conda.yaml")
    assert said(root, "six", FAILED, "aml_config/conda_dependencies.yml").endswith(" -d conda.yaml")


def test_a_program_that_is_missing_leads_to_its_package(root):
    why = "there is no program `deepspeed` on the PATH of this run"
    built = replace(BUILT, ending=Ending(Reason.CANNOT_START, detail=why))
    said(root, "six")
    folders = RunFolders(root.parent / "state")
    assert missing_file_sentence(root, folders, built).endswith("Add a line to requirements.txt: deepspeed")
    other = replace(built, ending=Ending(Reason.CANNOT_START, detail="there is no program `other` on the PATH"))
    assert missing_file_sentence(root, folders, other) == ""


def test_modules_that_no_package_brings_have_sentences_of_their_own(root):
    assert "`import holdfast` (log" in said(root, "azureml.core")
    assert said(root, "apex.amp").startswith("No package provides `apex.amp`")


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '{"run_configuration": 1}', "", "\0"], ids=len)
def test_a_record_of_any_shape_does_not_keep_the_advice_away(root, text):
    said(root, "six")
    folder = root.parent / "state" / "runs" / SUBMISSION.run_id
    for name in ("configuration.json", "plan.json"):
        (folder / name).write_text(text)
    assert "requirements.txt: six" in missing_file_sentence(root, RunFolders(folder.parents[1]), BUILT)
