from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.project.account_folder import account_folder
from holdfast.project.compute import compute_names, read_compute
from holdfast.project.configuration import load_configuration
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.folder import find_project
from holdfast.project.runconfig import read_runconfig
from kit.projects import home

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


@pytest.mark.parametrize(
    ("environment", "system", "expected"),
    [
        ({}, "linux", "/home/me/.config/holdfast"),
        ({"XDG_CONFIG_HOME": "/etc/me"}, "linux", "/etc/me/holdfast"),
        ({"XDG_CONFIG_HOME": "relative"}, "linux", "/home/me/.config/holdfast"),
        ({"XDG_CONFIG_HOME": ""}, "linux", "/home/me/.config/holdfast"),
        ({"XDG_CONFIG_HOME": "/etc/me"}, "darwin", "/home/me/Library/Application Support/holdfast"),
        ({"APPDATA": "/roaming"}, "win32", "/roaming/holdfast"),
        ({}, "win32", "/home/me/AppData/Roaming/holdfast"),
    ],
)
def test_targets_of_the_account_are_where_the_platform_keeps_settings(environment, system, expected):
    assert account_folder(environment, Path("/home/me"), system) == Path(expected)


def test_a_project_sees_targets_of_the_account_and_its_own_come_first(root, account):
    (account / "both.compute").write_text("type: remote\naddress: mine\n")
    (account / "only.compute").write_text("type: remote\naddress: mine\n")
    (root / "aml_config" / "both.compute").write_text("type: remote\naddress: theirs\n")
    folders = ConfigurationFolders(root, account)
    assert compute_names(folders) == ["both", "local", "only"]
    addresses = {name: getattr(read_compute(folders, name)[0], "address", None) for name in ("both", "only")}
    assert addresses == {"both": "theirs", "only": "mine"}
    assert folders.hidden("both", ".compute") == str(account / "both.compute")
    assert folders.hidden("only", ".compute") is None


def test_what_local_means_only_a_project_can_change(root, account):
    (account / "local.compute").write_text("type: docker\n")
    target, problems = read_compute(ConfigurationFolders(root, account), "local")
    assert (target and target.file, problems) == (None, [])


def test_files_that_a_configuration_of_the_account_names_are_the_projects(root, account):
    (account / "box.compute").write_text("type: docker\n")
    (account / "box.runconfig").write_text(
        "Target: box\nFramework: Python\nCondaDependenciesFile: requirements.txt\nArgumentVector: [$file]\n"
    )
    (root / "requirements.txt").write_text("numpy\n")
    found = load_configuration(find_project(root, home(), account=account), "box", None)
    assert found.environment is not None and found.environment.file == "requirements.txt"
    assert found.run.file == str(account / "box.runconfig")


def test_a_configuration_of_the_project_may_name_a_target_of_the_account(root, account):
    (account / "box.compute").write_text(HERE)
    (root / "aml_config" / "night.runconfig").write_text("Target: box\nFramework: Python\n")
    found, problems = read_runconfig(ConfigurationFolders(root, account), "night")
    assert (found and found.target, problems) == ("box", [])


def test_a_pipe_in_the_folder_is_no_target(root, account):
    os.mkfifo(account / "box.compute")
    assert compute_names(ConfigurationFolders(root, account)) == ["local"]
