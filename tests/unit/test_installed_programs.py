"""Programs of this machine."""

import os

import pytest

from holdfast.installed_programs import find_program


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "bin" / "tool"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_first_on_path_that_can_be_started_is_found(tmp_path, program):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tool").write_text("no program")
    (tmp_path / "folder" / "tool").mkdir(parents=True)
    path = os.pathsep.join(map(str, [tmp_path / "none", tmp_path / "other", tmp_path / "folder", program.parent]))
    assert find_program("tool", {"PATH": path}) == str(program)
    assert find_program("tools", {"PATH": path}) is None


@pytest.mark.parametrize("path", ["", ".", "bin", ":", "./bin:../bin"])
def test_folders_that_depend_on_where_one_is_do_not_count(tmp_path, program, monkeypatch, path):
    monkeypatch.chdir(program.parent)
    assert find_program("tool", {"PATH": path}) is None
    monkeypatch.chdir(tmp_path)
    assert find_program("tool", {"PATH": path}) is None
