"""Folders as users had them, in `tests/cases/project-files`, each with the exact problems in `expected.txt`.

To see what a folder gives now: `python tests/unit/project/test_project_cases.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.project.compute import read_compute
from holdfast.project.conda_file import read_conda
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.problems import Problem, errors_in
from holdfast.project.runconfig import read_runconfig
from holdfast.project.spark import read_spark

CASES = Path(__file__).parents[2] / "cases" / "project-files"


@pytest.mark.parametrize("case", sorted(each.name for each in CASES.iterdir() if each.is_dir()))
def test_a_folder_as_users_have_it_gives_exactly_these_problems(case):
    assert describe(CASES / case) == (CASES / case / "expected.txt").read_text(encoding="utf-8")


def test_an_unedited_project_of_the_original_has_no_errors():
    assert "error" not in describe(CASES / "original-workbench")


def describe(root: Path) -> str:
    lines = []
    for path in sorted((root / "aml_config").iterdir()):
        value, problems = _read(root, path)
        assert (value is None) == bool(errors_in(problems)), f"{path}: a value if and only if there is no error"
        lines += [f"{problem.severity} {problem}" for problem in problems]
    return "".join(f"{line}\n" for line in lines)


def _read(root: Path, path: Path) -> tuple[object, list[Problem]]:
    if path.suffix == ".compute":
        return read_compute(ConfigurationFolders(root), path.stem)
    if path.suffix == ".runconfig":
        return read_runconfig(ConfigurationFolders(root), path.stem)
    relative = path.relative_to(root).as_posix()
    if path.suffix == ".yml":
        return read_spark(root, relative) if path.name.startswith("spark") else read_conda(root, relative)
    return "not read here", []


if __name__ == "__main__":
    sys.stdout.write(describe(Path(sys.argv[1])))
