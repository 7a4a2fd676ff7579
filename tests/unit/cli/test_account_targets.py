"""`computetarget attach --user` and what commands say of targets that every project sees."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def settings() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"], "holdfast")


def targets(command) -> dict[str, dict[str, str | None]]:
    return {each["name"]: each for each in json.loads(command("computetarget", "list").out)}


def test_a_target_of_the_account_is_seen_in_every_folder_and_nothing_is_written_there(
    command, settings, tmp_path, monkeypatch
):
    done = command("computetarget", "attach", "local", "--user", "-n", "box")
    files = [settings / "box.compute", settings / "box.runconfig"]
    assert (done.code, done.out.splitlines()) == (0, [str(each) for each in files])
    assert settings.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert targets(command)["box"]["file"] == str(files[0])
    assert command("computetarget", "show", "box", "--query", "type").out == '"local"\n'
    again = command("computetarget", "attach", "local", "--user", "-n", "box")
    assert again.code == 242
    assert "holdfast computetarget detach --user box" in again.err
    removed = command("computetarget", "detach", "box")
    assert (removed.code, removed.err.split()) == (0, ["removed", str(files[0]), "removed", str(files[1])])
    assert list(settings.iterdir()) == []


def test_the_list_says_which_target_of_the_account_a_project_hides(command, settings, configure):
    command("computetarget", "attach", "local", "--user", "-n", "box")
    own = configure("box.compute", "type: local\n")
    row = targets(command)["box"]
    assert (row["file"], row["hides"]) == ("aml_config/box.compute", str(settings / "box.compute"))
    assert "Hides yours" in command("computetarget", "list", "-o", "table").out
    assert command("computetarget", "detach", "box").code == 0
    assert not own.exists() and (settings / "box.compute").exists(), "the project's own is meant first"
    configure("box.compute", "type: local\n")
    assert command("computetarget", "detach", "--user", "box").code == 0
    assert own.exists() and not (settings / "box.compute").exists()


def test_names_of_the_account_are_completed_and_are_words_of_submit(command, settings, monkeypatch):
    command("computetarget", "attach", "local", "--user", "-n", "box")
    Path("t.py").write_text("print(1)\n")
    assert "stands after the script" in command("submit", "--dry-run", "t.py", "-t", "box").err
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", "holdfast submit -c b")
    assert command().out == "plain,box\n"


def test_local_cannot_be_a_target_of_the_account(command, settings):
    assert command("computetarget", "attach", "local", "--user", "-n", "local").code == 240
    settings.mkdir(parents=True, mode=0o700)
    (settings / "local.compute").write_text("type: docker\n")
    done = command("computetarget", "list")
    assert f"{settings / 'local.compute'} is not used" in done.err
    assert targets(command)["local"]["type"] == "local"


def test_nothing_is_written_into_a_folder_that_others_can_change(command, settings):
    settings.mkdir(parents=True)
    settings.chmod(0o777)
    done = command("computetarget", "attach", "local", "--user", "-n", "box")
    assert done.code == 241, done.err
    assert f"chmod go-w {settings}" in done.err
    assert list(settings.iterdir()) == []


def test_a_named_python_is_started_and_written(command, tmp_path):
    done = command("computetarget", "attach", "local", "-n", "box", "--python", sys.executable)
    assert done.code == 0, done.err
    assert ".".join(map(str, sys.version_info[:3])) in done.err
    assert f"pythonLocation: {sys.executable}" in (tmp_path / "aml_config" / "box.compute").read_text()


@pytest.mark.parametrize(
    ("python", "said"),
    [("no/such/python", "does not start"), (".", "is a folder"), ("/bin/false", "does not start"), ("a\0b", "")],
)
def test_a_python_that_does_not_start_is_not_written(command, tmp_path, python, said):
    done = command("computetarget", "attach", "local", "-n", "box", "--python", python)
    assert done.code == 242 and said in done.err, done.err
    assert not (tmp_path / "aml_config").exists()


def test_a_python_of_another_machine_is_named_by_its_whole_path(command):
    done = command("computetarget", "attach", "remote", "-n", "box", "-a", "gpu1", "--python", ".venv/bin/python")
    assert done.code == 240
    assert "on the machine: /opt/venv/bin/python" in done.err
    inside = command("computetarget", "attach", "docker", "-n", "box", "--python", "~/venv/bin/python")
    assert "in the image: /opt/venv/bin/python" in inside.err
