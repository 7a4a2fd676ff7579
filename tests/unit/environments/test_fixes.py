"""Writing fixes: exactly as intended, in all files or in none."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.environments.fixes import apply_fixes
from holdfast.environments.replacements import find_replacements
from holdfast.environments.spec_findings import SpecFinding
from holdfast.errors import ConfigurationError, StorageError
from holdfast.project.packages_search import read_environment_spec


def found(root: Path, file: str) -> tuple[SpecFinding, ...]:
    spec, problems = read_environment_spec(root, file)
    assert spec is not None, problems
    return find_replacements(spec)


def after(root: Path, file: str, text: str) -> str:
    """The fixed text; the mode of the file stays."""
    (root / file).write_bytes(text.encode())
    (root / file).chmod(0o640)
    assert apply_fixes(root, found(root, file)) == (file,)
    assert (root / file).stat().st_mode & 0o777 == 0o640
    assert apply_fixes(root, found(root, file)) == (), "nothing to fix writes nothing"
    return (root / file).read_bytes().decode()


@pytest.mark.parametrize(
    ("file", "before", "expected"),
    [
        (
            "c.yml",
            "\ufeffdependencies:\r\n- pip:\r\n  - sklearn\r\n",
            "\ufeffdependencies:\r\n- pip:\r\n  - scikit-learn\r\n",
        ),
        ("c.yml", "dependencies:\n- pip:\n  - sklearn", "dependencies:\n- pip:\n  - scikit-learn"),
        ("c.yml", "dependencies:\n- pip:\n  - azureml-requirements\n- numpy\n", "dependencies:\n- pip:\n- numpy\n"),
        ("c.yml", "dependencies: [{pip: [azureml-requirements]}]\n", "dependencies: [{pip: []}]\n"),
        ("c.yml", "dependencies: [{pip: [a, azureml-requirements]}]\n", "dependencies: [{pip: [a]}]\n"),
        (
            "c.yml",
            "dependencies:\n- pip:\n  - >-\n    sklearn\n  - a\n",
            "dependencies:\n- pip:\n  - scikit-learn\n  - a\n",
        ),
        ("c.yml", "dependencies:\r\n- azureml-requirements\r\n- pip\r\n", "dependencies:\r\n- pip\r\n"),
        (
            "c.yml",
            "dependencies: [azureml-requirements, {pip: [cntk, sklearn, azureml-api, azureml-history]}]\n",
            "dependencies: [python=3.6, {pip: [cntk, scikit-learn]}]\n",
        ),
        (
            "c.yml",
            "dependencies: [python=3.11, {pip: [a, 'torch==2.1+cu118']}]\n",
            'dependencies: [python=3.11, {pip: ["--extra-index-url https://download.pytorch.org/whl/cu118", a, '
            "'torch==2.1+cu118']}]\n",
        ),
        (
            "c.yml",
            "dependencies:\n- pip:\n  - tensorflow-gpu==1.15\n  - cntk\n",
            "dependencies:\n- python=3.6\n- pip:\n  - tensorflow-gpu==1.15\n  - cntk\n",
        ),
        ("r.txt", "a\n  sklearn\\\n  # why\nb", "a\n  scikit-learn  # why\nb"),
        ("r.txt", "sklearn", "scikit-learn"),
        ("r.txt", "a\nazureml-requirements # why\n", "a\n# why\n"),
        (
            "r.txt",
            "-i https://me:s3cret@azuremldownloads.azureedge.net/x\n-f https://me:s3cret@h.example\n",
            "-f https://me:s3cret@h.example\n",
        ),
        (
            "pyproject.toml",
            "[project]\nname = 'x'\ndependencies = ['sklearn', 'azureml-requirements']\n",
            "[project]\nname = 'x'\ndependencies = ['scikit-learn']\n",
        ),
        (
            "pyproject.toml",
            "[project]\nname = 'x'\ndependencies = [\n  'azureml-requirements',\n  'a',\n  'azureml-api', # why\n]\n",
            "[project]\nname = 'x'\ndependencies = [\n  'a',\n  # why\n]\n",
        ),
    ],
)
def test_only_what_was_found_is_changed(tmp_path, file, before, expected):
    assert after(tmp_path, file, before) == expected


@pytest.mark.parametrize(
    ("file", "before", "changed"),
    [
        ("c.yml", "dependencies:\n- pip:\n  - sklearn\n", "dependencies:\n- pip:\n  - numpy\n"),
        ("c.yml", "dependencies:\n- pip:\n  - sklearn\n", "dependencies: [\n"),
        ("r.txt", "sklearn\n", "# sklearn\n"),
        ("pyproject.toml", "[project]\nname = 'x'\ndependencies = ['sklearn']\n", "[project]\nname = 'x'\n"),
    ],
)
def test_a_file_that_has_changed_since_is_left_alone_with_all_others(tmp_path, file, before, changed):
    (tmp_path / file).write_text(before)
    (tmp_path / "other.txt").write_text("skimage\n")
    findings = found(tmp_path, file) + found(tmp_path, "other.txt")
    (tmp_path / file).write_text(changed)
    with pytest.raises(ConfigurationError, match="By hand: Write `scikit-learn`"):
        apply_fixes(tmp_path, findings)
    assert (tmp_path / file).read_text() == changed
    assert (tmp_path / "other.txt").read_text() == "skimage\n"


def test_an_option_that_shares_its_line_is_left_to_a_person(tmp_path):
    text = "--index-url https://azuremldownloads.azureedge.net/x --no-index\n"
    (tmp_path / "r.txt").write_text(text)
    with pytest.raises(ConfigurationError, match="By hand: Remove the line"):
        apply_fixes(tmp_path, found(tmp_path, "r.txt"))
    assert (tmp_path / "r.txt").read_text() == text


def test_a_file_that_cannot_be_written_leaves_all_as_they_were(tmp_path, monkeypatch):
    (tmp_path / "r.txt").write_text("sklearn\n-r s.txt\n")
    (tmp_path / "s.txt").write_text("skimage\n")
    findings = found(tmp_path, "r.txt")
    replace = Path.replace

    def fails_on_the_second(path: Path, target: Path) -> Path:
        if target.name == "s.txt":
            raise OSError(28, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fails_on_the_second)
    with pytest.raises(StorageError, match=r"`s\.txt` cannot be written: "):
        apply_fixes(tmp_path, findings)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["r.txt", "s.txt"]
    assert (tmp_path / "r.txt").read_text() == "sklearn\n-r s.txt\n"


def test_packages_that_need_different_pythons_are_left_to_a_person(tmp_path):
    (tmp_path / "c.yml").write_text("dependencies: [python=3.11, {pip: [cntk, tensorflow-gpu==2.11.0]}]\n")
    left = [(each.package, each.replacement) for each in found(tmp_path, "c.yml")]
    assert left == [("cntk", None), ("tensorflow-gpu==2.11.0", None)]
