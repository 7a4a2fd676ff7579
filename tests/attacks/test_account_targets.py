"""Other accounts put targets into the folder of settings, or change what is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.project.compute import compute_names, read_compute
from holdfast.project.configuration_folders import ConfigurationFolders

HERE = "type: local\n"


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "settings" / "holdfast"
    folder.mkdir(parents=True, mode=0o700)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "aml_config").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("place", ["", "box.compute"], ids=["folder", "file"])
def test_a_target_that_others_can_change_is_refused_with_the_command(root, account, place):
    (account / "box.compute").write_text(HERE)
    account.chmod(0o755)
    exposed = (account / place).resolve()
    exposed.chmod(exposed.stat().st_mode | 0o022)
    folders = ConfigurationFolders(root, account)
    target, problems = read_compute(folders, "box")
    assert target is None
    assert f"chmod go-w {exposed}" in str(problems[0])
    exposed.chmod(exposed.stat().st_mode & ~0o022)
    assert read_compute(folders, "box")[0] is not None


def test_a_file_in_a_folder_that_nobody_else_can_enter_may_have_any_mode(root, account):
    (account / "box.compute").write_text(HERE)
    (account / "box.compute").chmod(0o666)
    assert read_compute(ConfigurationFolders(root, account), "box")[0] is not None


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_a_link_is_followed_to_a_file_that_only_this_account_can_change(root, account, tmp_path, mode):
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "box.compute").write_text(HERE)
    (tmp_path / "dotfiles" / "box.compute").chmod(mode)
    (account / "box.compute").symlink_to(tmp_path / "dotfiles" / "box.compute")
    target, _ = read_compute(ConfigurationFolders(root, account), "box")
    assert (target is not None) == (mode == 0o644)


@pytest.mark.parametrize("place", ["", "box.compute"], ids=["folder", "file"])
def test_what_another_account_owns_is_not_used_but_what_the_project_has_is(root, account, place, needs):
    needs(root=True)
    (account / "box.compute").write_text(HERE)
    (root / "aml_config" / "own.compute").write_text(HERE)
    os.chown(account / place, 12345, -1)
    folders = ConfigurationFolders(root, account)
    target, problems = read_compute(folders, "box")
    assert target is None and "belongs to another account" in str(problems[0])
    assert compute_names(folders) == ["box", "local", "own"], "listing is no use of it"
    assert read_compute(folders, "own")[0] is not None
