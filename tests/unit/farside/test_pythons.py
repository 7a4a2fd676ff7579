"""Pythons are found by name and place; other programs, and those that only choose a Python, are left out."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.farside.machine.pythons import candidates, split, version_said
from unit.farside.programs import ELF, program


def python(path: Path, content: str = ELF) -> Path:
    """A Python unlike any other."""
    return program(path, content + str(path))


def found(home: Path, *folders: Path) -> list[str]:
    environment = {"HOME": str(home), "PATH": os.pathsep.join(map(str, folders))}
    return [each for each in candidates(environment) if each.startswith(str(home))]


def test_one_python_under_several_names_is_found_once(tmp_path):
    real = python(tmp_path / "bin" / "python3.9")
    for name in ("python", "python3"):
        (tmp_path / "bin" / name).symlink_to(real)
    python(tmp_path / "bin" / "python3-config")
    python(tmp_path / "bin" / "python3.9m")
    assert found(tmp_path, tmp_path / "bin") == [str(tmp_path / "bin" / "python3")]


def test_scripts_that_choose_a_python_and_files_that_are_not_executable_are_left_out(tmp_path):
    python(tmp_path / "shims" / "python3", "#!/usr/bin/env bash\n")
    python(tmp_path / "bin" / "python3.8").chmod(0o644)
    assert found(tmp_path, tmp_path / "shims", Path("relative")) == []


def test_pyenv_conda_and_environments_are_found_with_their_versions_and_none_is_started(tmp_path):
    pyenv = python(tmp_path / ".pyenv" / "versions" / "3.7.16" / "bin" / "python3")
    conda = python(tmp_path / "miniconda3" / "envs" / "old" / "bin" / "python3")
    record = tmp_path / "miniconda3" / "envs" / "old" / "conda-meta" / "python-3.6.13-h12debd9_1.json"
    record.parent.mkdir()
    record.write_text("{}")
    venv = tmp_path / "venv" / "bin" / "python3"
    venv.parent.mkdir(parents=True)
    venv.symlink_to(pyenv)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = x\nversion = 3.7.16\n")

    paths = found(tmp_path, venv.parent)

    assert paths == [str(venv), str(pyenv), str(conda)]
    assert split(paths) == ({str(venv): "3.7.16", str(pyenv): "3.7.16", str(conda): "3.6.13"}, [])


def test_one_whose_place_says_nothing_is_to_be_asked_and_its_name_is_better_than_nothing(tmp_path):
    path = str(python(tmp_path / "bin" / "python3.9"))
    assert split([path]) == ({path: "3.9"}, [path])
    assert version_said("noise\npython 3.9.18\n") == "3.9.18"
    assert version_said("Segmentation fault") is None


def test_few_are_started_however_many_there_are(tmp_path):
    paths = [str(python(tmp_path / f"bin{number}" / "python3.9")) for number in range(30)]
    assert len(split(paths)[1]) == 8
