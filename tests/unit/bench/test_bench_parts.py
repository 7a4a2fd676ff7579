"""Sizes of installations, import times, the environment of children, the options of the command."""

from __future__ import annotations

import os

import children
import peers
import profiles
import pytest
import run
from children import make_place
from children import run as run_child
from measuring import FailedError
from peers import Tool, measure_size, version_of


def test_an_installation_counts_each_file_once_and_no_bytecode(tmp_path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "thing").mkdir(parents=True)
    (packages / "thing" / "data").write_bytes(b"x" * 50_000)
    before = measure_size(tmp_path).bytes
    os.link(packages / "thing" / "data", packages / "thing" / "twin")
    (packages / "thing" / "__pycache__").mkdir()
    (packages / "thing" / "__pycache__" / "data.pyc").write_bytes(b"x" * 50_000)
    assert measure_size(tmp_path).bytes == before >= 50_000


def test_packages_inside_packages_are_not_counted(tmp_path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("thing-1.2.dist-info", "other-3.dist-info", "thing/carried/inner-9.dist-info"):
        (packages / name).mkdir(parents=True)
    assert measure_size(tmp_path).packages == 2
    assert version_of("thing", tmp_path) == "1.2"
    assert version_of("absent", tmp_path) == ""


def test_every_peer_is_pinned_to_one_version():
    pins = [line.split("==")[0] for line in peers.PINS.read_text().splitlines() if not line.startswith("#")]
    assert [name for name in peers.PEERS if pins.count(name) != 1] == []


def test_import_times_are_read_with_their_depth():
    text = "import time: self [us] | cumulative | imported package\n"
    text += "import time:       120 |        350 |   click.core\nnoise\n"
    assert profiles.parse_imports(text) == [profiles.Import("click.core", 120, 350, 1)]


def test_a_child_sees_its_own_home_and_nothing_of_this_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    place = make_place(tmp_path, "one", Tool("tool", tmp_path / "tool"))
    seen = dict(line.split("=", 1) for line in run_child(place, ["env"]).out.splitlines())
    assert seen["HOME"] == str(tmp_path / "one" / "home")
    assert seen["PATH"].startswith(str(tmp_path / "tool" / "bin") + ":")
    assert not {"PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"} & seen.keys()


def test_a_child_that_fails_or_says_something_else_is_no_measurement(tmp_path):
    place = make_place(tmp_path, "one", Tool("tool", tmp_path / "tool"))
    with pytest.raises(FailedError, match="`sh` failed with exit code 3: oh"):
        run_child(place, ["sh", "-c", "echo oh >&2; exit 3"])
    with pytest.raises(FailedError, match="`echo` failed with exit code 0: no"):
        run_child(place, ["echo", "no"], expect="yes")


def test_a_child_that_hangs_is_ended_and_is_no_measurement(tmp_path, monkeypatch):
    monkeypatch.setattr(children, "PATIENCE", 0.05)
    place = make_place(tmp_path, "one", Tool("tool", tmp_path / "tool"))
    with pytest.raises(FailedError, match="`sleep` had not ended"):
        run_child(place, ["sleep", "60"])


def test_a_tool_that_is_not_installed_says_why_when_it_is_called(tmp_path):
    place = make_place(tmp_path, "one", Tool("tool", tmp_path, problem="could not be installed: no network"))
    with pytest.raises(FailedError, match="no network"):
        run_child(place, ["true"])


def test_only_the_tools_of_the_chosen_rows_are_installed():
    chosen = [module for module in run.MODULES if module.NAME in ("help", "scalars")]
    assert run.needed_tools(chosen) == ["holdfast", "trackio"]


def test_rows_have_names_of_their_own():
    names = [module.NAME for module in run.MODULES]
    assert len(set(names)) == len(names) == 23


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--repeat", "0"], ["--profile", "nothing"]])
def test_an_option_that_makes_no_sense_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        run.parse(arguments)
    assert "error:" in capsys.readouterr().err
