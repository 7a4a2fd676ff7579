"""Folders in `tests/cases/specs`, each with the findings in its spec (`expected.txt`, empty if there must be none) and,
if `--fix` changes something, its files afterwards (`fixed/`). With a file `wants-gpu`, its runs should use a GPU.

To write what a folder gives now: `python tests/unit/environments/test_spec_cases.py FOLDER`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from holdfast.environments.fixes import apply_fixes
from holdfast.environments.replacements import find_replacements
from holdfast.environments.spec_findings import KINDS, SpecFinding
from holdfast.project.packages_search import read_environment_spec

CASES = Path(__file__).parents[2] / "cases" / "specs"
NAMES = sorted(each.name for each in CASES.iterdir() if each.is_dir())
SPECS = ("aml_config/conda_dependencies.yml", "requirements.txt", "pyproject.toml")


@pytest.mark.parametrize("case", NAMES)
def test_a_spec_gives_exactly_these_findings(case):
    assert describe(CASES / case) == (CASES / case / "expected.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", NAMES)
def test_a_fixed_spec_is_as_expected_and_has_nothing_left_to_fix(case, tmp_path):
    changed = fixed(CASES / case, tmp_path / "project")
    expected = CASES / case / "fixed"
    files = {each.relative_to(expected).as_posix() for each in expected.rglob("*") if each.is_file()}
    assert set(changed) == files
    for file in files:
        assert (tmp_path / "project" / file).read_bytes() == (expected / file).read_bytes()
    assert [each for each in findings(tmp_path / "project") if each.replacement is not None] == []


def test_every_kind_of_finding_has_a_case_and_some_cases_are_silent():
    found = [findings(CASES / case) for case in NAMES]
    assert {each.kind for case in found for each in case} == set(KINDS)
    assert sum(not case for case in found) >= 8


def findings(root: Path) -> tuple[SpecFinding, ...]:
    name = next(each for each in SPECS if (root / each).exists())
    spec, problems = read_environment_spec(root, name)
    assert spec is not None and problems == [], problems
    return find_replacements(spec, wants_gpu=(root / "wants-gpu").exists())


def describe(root: Path) -> str:
    lines = []
    for each in findings(root):
        fix = {None: "by hand", "": "remove"}.get(each.replacement, f"write {each.replacement}")
        lines.append(f"{each.severity} {each.kind} {each.file}:{each.line} {each.sentence} {each.remedy} [{fix}]\n")
    return "".join(lines)


def fixed(case: Path, project: Path) -> tuple[str, ...]:
    shutil.copytree(case, project, ignore=shutil.ignore_patterns("fixed", "expected.txt"))
    return apply_fixes(project, findings(project))


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        (folder / "expected.txt").write_text(describe(folder), encoding="utf-8")
        shutil.rmtree(folder / "fixed", ignore_errors=True)
        made = folder.with_name(f".{folder.name}.fixed")
        for file in fixed(folder, made):
            (folder / "fixed" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made / file, folder / "fixed" / file)
        shutil.rmtree(made)
