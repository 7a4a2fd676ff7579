"""Commands about machines in a folder that is no project, and about projects that lie elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.project.known_projects import known_projects
from kit.projects import home


@pytest.fixture
def command(holdfast: Callable[..., Any]) -> Callable[..., Any]:
    """Where the test stands."""
    return lambda *words: holdfast(*words, cwd=Path.cwd())


@pytest.fixture
def projects(command, tmp_path, monkeypatch) -> dict[str, str]:
    """Two projects with a run each on this machine; the second one's file is only there. We stand beside them."""
    runs = {}
    for name, more in (("near", ()), ("only", ("--outputs-limit", "1kB"))):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("t.py").write_text("open('big', 'wb').write(b'x' * 2000)\n")
        assert command("submit", *more, "t.py").code == 0
        runs[name] = json.loads(command("history", "last", "-o", "json").out)["run_id"]
    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(tmp_path / "beside")
    return runs


def on_this_machine() -> set[str]:
    return {path.name for path in (home() / "runs").glob("*/*") if "_" in path.name}


def test_every_project_of_this_account_is_cleaned_and_no_only_copy_is_removed(command, projects, tmp_path):
    unnamed = command("experiment", "clean", "--all")
    assert (unnamed.code, "-t NAME" in unnamed.err) == (240, True)
    done = command("experiment", "clean", "--all", "-t", "local", "--yes")
    assert done.code == 0
    assert str(tmp_path / "near") in done.err and str(tmp_path / "only") in done.err
    assert on_this_machine() == {projects["only"]}
    assert f"kept {projects['only']}" in done.err and "big (2.0 kB)" in done.err
    assert list(Path().iterdir()) == []


def test_in_a_project_all_projects_have_to_be_asked_for(command, projects, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "only")
    assert command("experiment", "clean", "--all").code == 0
    assert on_this_machine() == set(projects.values())
    assert command("experiment", "clean", "--all-projects", "-t", "local", "--yes").code == 0
    assert on_this_machine() == {projects["only"]}


def test_runs_of_a_project_that_was_moved_are_kept(command, projects, tmp_path, monkeypatch):
    (tmp_path / "near").rename(tmp_path / "moved")
    assert command("experiment", "clean", "--all", "-t", "local", "--yes").code == 0
    assert on_this_machine() == set(projects.values()), "where a project went is not known before a command runs there"
    monkeypatch.chdir(tmp_path / "moved")
    assert command("experiment", "clean", "--all").code == 0
    assert projects["near"] not in on_this_machine()


@pytest.mark.parametrize(
    "words", [("environment", "list"), ("computetarget", "list"), ("experiment", "clean", "--environments")]
)
def test_the_home_folder_and_the_root_are_places_to_type_in(command, monkeypatch, words):
    for folder in (os.environ["HOME"], "/"):
        monkeypatch.chdir(folder)
        assert command(*words).code == 0
    assert not Path("/.holdfast").exists()


def test_a_run_of_another_project_is_found_with_the_words_that_lead_there(command, projects, tmp_path):
    done = command("status", "-r", projects["near"])
    assert done.code == 240
    assert f"--project {tmp_path / 'near'}" in done.err
    assert command("status", "--project", str(tmp_path / "near"), "-r", projects["near"]).code == 0
    assert "--project" not in command("status", "-r", "none_1").err


def test_a_target_of_the_account_stays_while_results_of_any_project_are_only_there(
    command, projects, tmp_path, monkeypatch
):
    assert command("computetarget", "attach", "local", "--user", "-n", "box").code == 0
    monkeypatch.chdir(tmp_path / "near")
    assert command("submit", "-t", "box", "--outputs-limit", "1kB", "t.py").code == 0
    monkeypatch.chdir(tmp_path / "beside")
    refused = command("computetarget", "detach", "--purge", "--yes", "box")
    assert refused.code == 246, refused.err
    assert f"holdfast history download --project {tmp_path / 'near'} -r " in refused.err


def test_projects_are_known_by_records_that_nobody_else_can_write(command, projects, tmp_path):
    records = home() / "projects"
    (records / "a-1.json").write_text("[]")
    (records / "b-1.json").write_text(json.dumps({"path": "/etc/passwd"}))
    (records / "c-1.json").write_text(json.dumps({"path": f"{tmp_path}/none/.holdfast"}))
    (records / "d-1.json").write_text("{")
    os.mkfifo(records / "e-1.json")
    forged = tmp_path / "forged"
    (forged / ".holdfast").mkdir(parents=True)
    (forged / ".holdfast" / "project.json").write_text(json.dumps({"format": 1, "id": "a" * 32}))
    (records / "f-1.json").write_text(json.dumps({"path": f"{forged}/.holdfast"}))
    assert [each.root for each in known_projects(home())] == [tmp_path / "near", tmp_path / "only"]


def test_the_named_folder_is_the_project_whatever_lies_around_it(command, tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    done = command("submit", "--project", "a", "-a", "t.py")
    assert done.code == 0, done.err
    assert [path.name for path in tmp_path.iterdir() if (path / ".holdfast").exists()] == ["a"]
    run_id = done.out.strip()
    assert json.loads(command("history", "list", "--project", "a").out)[0]["run_id"] == run_id
    assert command("history", "list").out == "[]\n"
    assert f"holdfast logs --project a -f -r {run_id}" in done.err


def test_runs_of_the_named_project_are_completed(command, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    run_id = command("submit", "--project", "a", "-a", "t.py").out.strip()
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", f"holdfast status --project a -r {run_id[:3]}")
    assert command().out.split() == [f"plain,{run_id}"]


def test_a_submission_says_that_the_projects_target_is_not_the_one_of_the_account(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command("computetarget", "attach", "local", "--user", "-n", "box")
    Path("t.py").write_text("print(1)\n")
    assert "not yours" not in command("submit", "-c", "box", "-a", "t.py").err
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "box.compute").write_text("type: local\n")
    done = command("submit", "-c", "box", "-a", "t.py")
    assert done.code == 0, done.err
    assert f"(aml_config/box.compute), not yours ({os.environ['XDG_CONFIG_HOME']}/holdfast/box.compute)" in done.err
